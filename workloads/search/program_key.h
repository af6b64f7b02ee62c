// The key that tells partitioned programs apart.
#ifndef TPUSIM_WORKLOADS_SEARCH_PROGRAM_KEY_H_
#define TPUSIM_WORKLOADS_SEARCH_PROGRAM_KEY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "workloads/hlo/ir/ir.h"

namespace tpusim::search {

// Equal for modules that the compiler makes the same of, on the same devices: all but names of
// values and places in the source. Frontend attributes count: passes read what the partitioner
// notes there. It is the same in every process.
std::string ProgramKey(const hlo::Module& module, const std::vector<int64_t>& device_of_partition);

}  // namespace tpusim::search

#endif  // TPUSIM_WORKLOADS_SEARCH_PROGRAM_KEY_H_
