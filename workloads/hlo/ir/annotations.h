// The facts that one stage writes onto an instruction for a later one.
//
// An annotation is a frontend attribute, so that it is part of the module's text: a module that is
// printed between two passes and read again compiles to the same program. The table below has all
// of them; it is the one place that knows their names, types and readers. `tpusim opt
// --list-annotations` prints it, and the verifier (hlo/analysis/verify.h) refuses an attribute
// tpusim.* that is not in it or whose value is not of its type.
//
//   if (annotations::kReshard.On(collective)) ...
//   annotations::kReshardSite.Set(collective, 3);
//   const std::optional<int64_t> site = annotations::kReshardSite.Of(collective);
//
// Facts that the user states are annotations too (passes/annotate). Attributes that JAX or XLA
// define (xla.sdy.*, kernel_name, ...) are read where they are needed, by FrontendAttribute.
#ifndef TPUSIM_WORKLOADS_HLO_IR_ANNOTATIONS_H_
#define TPUSIM_WORKLOADS_HLO_IR_ANNOTATIONS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "workloads/hlo/ir/ir.h"

namespace tpusim::hlo {

// Each row: the constant, its type, the attribute's name, the stages that write it, those that read
// it, the stage that removes it ("-": it stays), and what it says.
#define TPUSIM_ANNOTATIONS(ROW)                                                                    \
  ROW(kCheckpointName, Text, "tpusim.checkpoint_name", "tpusim.export", "normalise, remat",        \
      "normalise", "the checkpoint_name that an instruction gives to its operand")                 \
  ROW(kNames, Lines, "tpusim.names", "normalise, remat", "normalise", "normalise",                 \
      "checkpoint names of a value whose naming instructions are gone")                            \
  ROW(kRoll, Integer, "tpusim.roll", "propagate", "propagate, partition", "partition",             \
      "the element of the operand that a roll has first")                                          \
  ROW(kAxes, Text, "tpusim.axes", "partition, windowed-einsum", "windowed-einsum, cost, report",   \
      "-", "the mesh axes over which a collective communicates: \"x,y\"")                          \
  ROW(kReshard, Flag, "tpusim.reshard", "partition",                                               \
      "windowed-einsum, repeat-all-gathers, narrow-reduce-scatters, combine-reduce-scatters", "-", \
      "a collective that only changes a sharding; the program does not state it")                  \
  ROW(kReshardSite, Integer, "tpusim.reshard_site", "partition, windowed-einsum",                  \
      "windowed-einsum, report", "-", "the place of the program that a resharding belongs to")     \
  ROW(kSplitOver, Text, "tpusim.split_over", "partition", "windowed-einsum", "-",                  \
      "the mesh axes that divide the work of a dot: \"x,y\"")                                      \
  ROW(kWantedAxes, Text, "tpusim.wanted_axes", "partition", "windowed-einsum", "-",                \
      "the axes that a dot would best have, by dimension, operand by operand: \"x;y|;y\"")         \
  ROW(kRaggedSizes, Integers, "tpusim.ragged_sizes", "state-ragged-sizes", "partition, cost",      \
      "state-ragged-sizes", "rows per group of a ragged dot, or per member of an exchange")        \
  ROW(kBranch, Text, "tpusim.branch", "state-branches", "cost, lowering", "-",                     \
      "the branch that a conditional takes: its number, or \"longest\"")                           \
  ROW(kAssumedTrips, Integers, "tpusim.assumed_trips", "state-trip-counts", "cost, lowering", "-", \
      "trips of a loop or sweeps of an Eigh call; of a loop of branches, how often each is taken") \
  ROW(kMostTrips, Integer, "tpusim.most_trips", "state-trip-counts", "cost, lowering", "-",        \
      "the trips that a loop cannot exceed")                                                       \
  ROW(kKernelCost, Text, "tpusim.kernel_cost", "state-kernel-costs", "cost, lowering", "-",        \
      "the cost of a custom call, a KernelCost message as text")                                   \
  ROW(kKernelUnpriced, Text, "tpusim.kernel_unpriced", "state-kernel-costs", "cost, lowering",     \
      "-", "why the body of a custom call has no cost")                                            \
  ROW(kKernelOpenLoops, Text, "tpusim.kernel_open_loops", "state-kernel-costs", "cost", "-",       \
      "the loops of a kernel whose trip counts are missing, a KernelCost message as text")         \
  ROW(kTakesEstimate, Flag, "tpusim.takes_estimate", "take-estimates", "cost, lowering", "-",      \
      "a kernel takes the time that its compiled module states")                                   \
  ROW(kElementOrders, DimensionOrders, "tpusim.element_orders", "windowed-einsum", "layout", "-",  \
      "by element of a loop's state, its dimensions from the fastest to the slowest")              \
  ROW(kOrderedForMemory, Flag, "tpusim.ordered_for_memory", "schedule", "schedule, report",        \
      "schedule", "a start that was placed so that less is live, not for the shortest time")       \
  ROW(kDemotedFrom, Text, "async_collective_name", "demote-async", "async-collectives", "-",       \
      "the start of an asynchronous collective that nothing covered (XLA's attribute)")

// One row of the table, for printing.
struct AnnotationRow {
  std::string_view name, type, writer, readers, dropped_by, meaning;
};
std::span<const AnnotationRow> AnnotationTable();

template <typename Value>
struct Annotation {
  const char* name;

  // Returns whether the instruction has the annotation, whatever its value.
  bool On(const Instruction& instruction) const;
  // Returns its value; nullopt: the instruction has none, or one that is not of the type.
  std::optional<Value> Of(const Instruction& instruction) const;
  void Set(Instruction* instruction, const Value& value = {}) const;
  void Drop(Instruction* instruction) const;
};

namespace annotations {

// The types of values, and how they are written.
using Flag = std::monostate;                                      // "true"
using Integer = int64_t;                                          // "3"
using Integers = std::vector<int64_t>;                            // "128,0,64", not empty
using Text = std::string;                                         // as it is
using Lines = std::vector<std::string>;                           // one per line
using DimensionOrders = std::map<int64_t, std::vector<int64_t>>;  // "3:1,2,0;5:2,1,0"

#define TPUSIM_ANNOTATION_KEY(key, Type, name, writer, readers, dropped_by, meaning) \
  inline constexpr Annotation<Type> key{name};
TPUSIM_ANNOTATIONS(TPUSIM_ANNOTATION_KEY)
#undef TPUSIM_ANNOTATION_KEY

}  // namespace annotations

// Checks the annotations of an instruction. Error: an attribute tpusim.* that is not in the table,
// or a value that is not of its type.
absl::Status CheckAnnotations(const Instruction& instruction);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_IR_ANNOTATIONS_H_
