// Arguments that a step reads from end to end, whatever the data are.
//
// They lie in HBM when it begins, so reading them takes as long as HBM takes. Seen are those that
// products multiply, and those that results are made of element by element, at once or behind
// operations that keep all elements; also where a loop takes a layer of a stack in each iteration,
// every layer once. What is looked up, sliced otherwise, or handed to a kernel does not count.
#ifndef TPUSIM_WORKLOADS_SEARCH_WHOLE_READS_H_
#define TPUSIM_WORKLOADS_SEARCH_WHOLE_READS_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "workloads/hlo/ir/ir.h"

namespace tpusim::search {

// Returns by argument whether it is read whole. `trips` returns how often a loop runs.
std::vector<bool> WholeReads(
    const hlo::Module& module,
    const std::function<absl::StatusOr<int64_t>(const hlo::Instruction& loop)>& trips);

}  // namespace tpusim::search

#endif  // TPUSIM_WORKLOADS_SEARCH_WHOLE_READS_H_
