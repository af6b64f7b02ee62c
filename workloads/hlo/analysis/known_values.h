// Evaluates integers that a program computes from nothing but constants and the partition.
//
// Trip counts, branches, tables that Pallas kernels read ahead of their blocks (which blocks a mask
// leaves out, which comes next) and places of slots are integers that no data decide. They are
// constants, cut out for each partition, combined, and handed through copies, fusions, calls and
// loops that keep them. KnownValues follows all of that; operations on arrays are evaluated by
// integer_arrays.h.
//
// Whole arrays are evaluated, not the one element that is asked for: laziness by element was a
// second interpreter, and differed only in selects between a known and an unknown array.
#ifndef TPUSIM_WORKLOADS_HLO_ANALYSIS_KNOWN_VALUES_H_
#define TPUSIM_WORKLOADS_HLO_ANALYSIS_KNOWN_VALUES_H_

#include <cstdint>
#include <optional>

#include "workloads/hlo/analysis/call_graph.h"
#include "workloads/hlo/analysis/integer_arrays.h"
#include "workloads/hlo/ir/ir.h"

namespace tpusim::hlo {

struct KnownArray {
  Integers elements;
  bool everywhere = true;  // the same on every partition
};

// The module must not change while this lives, other than by instructions that are not asked about.
class KnownValues {
 public:
  // Evaluates for this partition, or, without one, only what is the same on all partitions.
  using Partition = std::optional<int64_t>;

  explicit KnownValues(const Module& module) : module_(module) {}

  // The elements of an array of integers or pred. nullopt: it depends on data, or on an operation
  // that has no rule.
  std::optional<KnownArray> ArrayOf(const Instruction& value, Partition partition) const;
  // The only element of such an array.
  std::optional<int64_t> ScalarOf(const Instruction& value, Partition partition = {}) const;

 private:
  friend class IntegerEvaluator;
  const CallGraph& Calls() const;

  const Module& module_;
  mutable std::optional<CallGraph> calls_;  // made for the first value that a caller gives
};

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_ANALYSIS_KNOWN_VALUES_H_
