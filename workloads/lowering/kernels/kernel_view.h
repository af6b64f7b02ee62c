// One kernel's worth of HLO, fused or not, seen the same way.
#ifndef TPUSIM_WORKLOADS_LOWERING_KERNELS_KERNEL_VIEW_H_
#define TPUSIM_WORKLOADS_LOWERING_KERNELS_KERNEL_VIEW_H_

#include <unordered_map>
#include <vector>

#include "configs/units.h"
#include "workloads/hlo/ir.h"
#include "workloads/passes/target.h"

namespace tpusim::lowering {

// An operand of the kernel as its inside sees it.
struct KernelInput {
  const hlo::Instruction* value = nullptr;   // outside: what is read
  const hlo::Instruction* inside = nullptr;  // the parameter, or `value` itself when not fused
  // The largest part of it that the kernel touches: all of it, or what slices
  // take out of it. Zero when it is only overwritten in place.
  hlo::Shape accessed;
  bool reads = true;
};

struct KernelView {
  const hlo::Instruction* instruction = nullptr;      // fusion or single instruction
  const hlo::Instruction* root = nullptr;             // what makes the result
  std::vector<const hlo::Instruction*> members;       // operands first; no parameters
  std::vector<KernelInput> inputs;

  const hlo::Instruction* FindMember(hlo::Opcode opcode) const;  // first, or null
};

KernelView ViewKernel(const hlo::Instruction& instruction);

// Inputs that reach `member` through its operand `index` without passing
// through another dot, as indices into view.inputs, ascending.
std::vector<int> InputsBehind(const KernelView& view, const hlo::Instruction& member, int index);

// Whole vector registers that an array takes: the last two dimensions in tiles.
int64_t VectorRegisters(const passes::Target& target, const hlo::Shape& shape);

}  // namespace tpusim::lowering

#endif  // TPUSIM_WORKLOADS_LOWERING_KERNELS_KERNEL_VIEW_H_
