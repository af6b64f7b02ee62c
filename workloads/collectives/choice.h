// The algorithm that serves a group: what the TPU compiler would choose, the fastest by its closed
// form, or one that is asked for by name.
#ifndef TPUSIM_WORKLOADS_COLLECTIVES_CHOICE_H_
#define TPUSIM_WORKLOADS_COLLECTIVES_CHOICE_H_

#include <string>

#include "absl/status/statusor.h"
#include "workloads/collectives/candidates.h"
#include "workloads/collectives/collective.h"

namespace tpusim::collectives {

struct Choice {
  Algorithm candidate;
  // A sentence that says what was taken where the compiler's choice is not known.
  std::string assumption;
};

// `where` names the collective. Error: the algorithm asked for does not apply;
// says which do.
absl::StatusOr<Choice> Choose(const configs::Config& config, const CollectiveRequest& request,
                              const GroupForm& form, const std::string& algorithm,
                              const std::string& where);

// The first of the fastest.
Algorithm Fastest(const configs::Config& config, const CollectiveRequest& request,
                  const GroupForm& form);

}  // namespace tpusim::collectives

#endif  // TPUSIM_WORKLOADS_COLLECTIVES_CHOICE_H_
