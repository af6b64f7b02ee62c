// The rematerialisation policies that are tried for a program that computes named values again.
//
// Every name is computed again, saved or off-loaded. All combinations are tried where they are few;
// else what is off-loaded is left out; and of many names the saved ones are those with the fewest
// bytes, one more each time, which is how a policy is widened until memory is full.
#ifndef TPUSIM_WORKLOADS_SEARCH_POLICIES_H_
#define TPUSIM_WORKLOADS_SEARCH_POLICIES_H_

#include <vector>

#include "workloads/remat/policies.h"

namespace tpusim::search {

// In each combination what is not computed again. The first is empty: the program as it came. Names
// for which `stated` has a policy, and those that cannot be kept, are left as they are.
std::vector<std::vector<remat::StatedPolicy>> PoliciesToTry(
    std::vector<remat::NameUse> names, const std::vector<remat::StatedPolicy>& stated);

}  // namespace tpusim::search

#endif  // TPUSIM_WORKLOADS_SEARCH_POLICIES_H_
