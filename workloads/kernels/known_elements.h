// Arrays of integers that a program computes of nothing but constants and the partition.
//
// Kernels for sparse attention read tables ahead of their blocks: which blocks a mask leaves out,
// which come next. They are constants of the program, cut out for each partition, and handed
// through loops and calls.
#ifndef TPUSIM_WORKLOADS_KERNELS_KNOWN_ELEMENTS_H_
#define TPUSIM_WORKLOADS_KERNELS_KNOWN_ELEMENTS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "workloads/hlo/analysis/call_graph.h"
#include "workloads/hlo/ir/ir.h"

namespace tpusim::kernels {

// In row-major order. nullopt: it depends on data, or on an operation that is not of that kind.
std::optional<std::vector<int64_t>> KnownElements(const hlo::Instruction& value, int64_t partition,
                                                  const hlo::CallGraph& calls);

}  // namespace tpusim::kernels

#endif  // TPUSIM_WORKLOADS_KERNELS_KNOWN_ELEMENTS_H_
