// A computation by numbers, and what part an instruction may have in a kernel.
//
// Fusion and the costs of its candidates ask the same few questions of every instruction
// many times: which are its operands and users, and may a kernel hold it. Here they are
// answered once. Instructions are numbered operands first, so a larger number never feeds a
// smaller.
#ifndef TPUSIM_WORKLOADS_COST_KERNEL_GRAPH_H_
#define TPUSIM_WORKLOADS_COST_KERNEL_GRAPH_H_

#include <cstdint>
#include <span>
#include <vector>

#include "workloads/hlo/ir/ir.h"

namespace tpusim::cost {

enum class Part {
  kNone,        // never inside a fusion: control, collectives, sorts, lookups, scalars
  kFree,        // copied into every kernel that uses it: constants, iotas, splats of scalars
  kExpression,  // elementwise work and index transforms: may be computed in any kernel
  kUpdate,      // a dynamic-update-slice: in place, always a result
  kReduce,
  kProduct,  // dots and convolutions
};

Part PartOf(const hlo::Instruction& instruction);

struct KernelGraph {
  explicit KernelGraph(const hlo::Computation& computation);

  int size() const { return static_cast<int>(instructions.size()); }
  bool Is(int i, Part part) const { return parts[i] == part; }
  const hlo::Instruction& At(int i) const { return *instructions[i]; }

  std::vector<hlo::Instruction*> instructions;
  std::vector<Part> parts;
  std::vector<std::vector<int>> operands;  // as in the instruction
  std::vector<std::vector<int>> users;     // each once, ascending
  std::vector<std::vector<int>> controls;  // control predecessors
  std::vector<std::vector<int>> controlled;
  int root = -1;
};

// The arrays that a kernel of some members reads, scalars and what it computes for itself
// aside. Remembers the last kernel that it was asked about.
class KernelInputs {
 public:
  explicit KernelInputs(const KernelGraph& graph);

  // In the order in which the members read them first. Valid until the next call.
  const std::vector<int>& Of(std::span<const int> members);
  // Of the last kernel.
  const std::vector<int>& last() const { return inputs_; }
  bool HasMember(int value) const { return member_at_[value] == stamp_; }
  bool HasInput(int value) const { return input_at_[value] == stamp_; }

 private:
  const KernelGraph& graph_;
  std::vector<char> may_be_input_;
  // Stamps say for which kernel an entry holds.
  int64_t stamp_ = 0;
  std::vector<int64_t> member_at_, input_at_;
  std::vector<int> inputs_;
};

}  // namespace tpusim::cost

#endif  // TPUSIM_WORKLOADS_COST_KERNEL_GRAPH_H_
