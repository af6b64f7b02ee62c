// Arguments that a step reads from end to end, whatever the data are.
//
// They lie in HBM when it begins, so reading them takes as long as HBM takes. Seen are those that
// products multiply, and those that results are made of element by element, at once or behind
// operations that keep all elements; also where a loop takes a layer of a stack in each iteration,
// every layer once. What is looked up, sliced otherwise, or handed to a kernel does not count.
#ifndef TPUSIM_WORKLOADS_SEARCH_WHOLE_READS_H_
#define TPUSIM_WORKLOADS_SEARCH_WHOLE_READS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "configs/units.h"
#include "workloads/hlo/io/import.h"
#include "workloads/hlo/ir/ir.h"

namespace tpusim::search {

// Returns how often a loop runs.
using LoopTrips = std::function<absl::StatusOr<int64_t>(const hlo::Instruction& loop)>;

// Returns by argument whether it is read whole.
std::vector<bool> WholeReads(const hlo::Module& module, const LoopTrips& trips);

// Returns whether an argument is in host memory when the step begins.
bool StartsOnHost(const tpusim::Workload& workload, size_t argument);

// Returns by argument the bytes that the step reads from HBM for certain: all of an argument that
// begins there and is read whole, 0 of others.
std::vector<Bytes> BytesRead(const hlo::Module& module, const tpusim::Workload& workload,
                             const LoopTrips& trips);

}  // namespace tpusim::search

#endif  // TPUSIM_WORKLOADS_SEARCH_WHOLE_READS_H_
