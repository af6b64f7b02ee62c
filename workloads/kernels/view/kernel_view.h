// One kernel's worth of HLO, fused or not, seen the same way.
//
// The room answers what a kernel reads, computes and writes, without a price; `ViewKernel` is its
// entry point, and the others describe the product of a kernel, the rows that it holds whole and
// the share of a value that it needs.
#ifndef TPUSIM_WORKLOADS_KERNELS_VIEW_KERNEL_VIEW_H_
#define TPUSIM_WORKLOADS_KERNELS_VIEW_KERNEL_VIEW_H_

#include <functional>
#include <unordered_set>
#include <vector>

#include "configs/units.h"
#include "models/isa/program.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/target/target.h"

namespace tpusim::kernels {

// An operand of the kernel as its inside sees it.
struct KernelInput {
  const hlo::Instruction* value = nullptr;   // outside: what is read
  const hlo::Instruction* inside = nullptr;  // the parameter, or `value` itself when not fused
  double share = 0;                          // how much of it is read as it lies, in whole tiles
  std::vector<const hlo::Instruction*> lookups;  // gathers and scatters that read rows of it
  isa::MemorySpace space = isa::MemorySpace::kHbm;

  // False: it is only overwritten in place.
  bool reads() const { return share > 0 || !lookups.empty(); }
};

// A result: one for an array, one per element of a tuple.
struct KernelOutput {
  const hlo::Instruction* value = nullptr;       // what computes it
  hlo::Shape written;                            // an update in place writes only the update
  const hlo::Instruction* indexed_by = nullptr;  // the scatter that writes it
  isa::MemorySpace space = isa::MemorySpace::kHbm;
};

struct KernelView {
  const hlo::Instruction* instruction = nullptr;  // fusion or single instruction
  const hlo::Instruction* root = nullptr;         // what makes the result
  std::vector<const hlo::Instruction*> members;   // operands first; no parameters
  std::vector<double> shares;                     // of each member, how much is needed
  std::vector<KernelInput> inputs;
  std::vector<KernelOutput> outputs;

  const hlo::Instruction* FindMember(hlo::Opcode opcode) const;  // first, or null
  const hlo::Instruction* FindMember(const std::function<bool(hlo::Opcode)>& wanted) const;
};

KernelView ViewKernel(const hlo::Instruction& instruction, const target::Target& target);

// Returns the memory that an array lives in, from its layout.
isa::MemorySpace SpaceOf(const hlo::Shape& shape);

// Bytes that come from (go to) memory for it, in whole tiles or DMA granules.
Bytes BytesOf(const KernelInput& input, const target::Target& target);
Bytes BytesOf(const KernelOutput& output, const target::Target& target);
// Returns one window over all of every input that is read and of every output.
std::vector<isa::Window> WholeWindows(const KernelView& view, const target::Target& target);
// The most vector registers that one of them takes.
double MostRegisters(const KernelView& view, const target::Target& target);
// Elements that come in, and the vector registers that they take.
double ElementsOf(const KernelInput& input);
double RegistersOf(const KernelInput& input, const target::Target& target);
// Unpacking of narrow elements on their way in, as RepackWork counts it.
double UnpackWork(const KernelInput& input, const target::Target& target);

// Inputs that reach `member` through its operand `index` without passing
// through another product, as indices into view.inputs, ascending.
std::vector<int> InputsBehind(const KernelView& view, const hlo::Instruction& member, int index);

// Members that compute its operand `index`.
std::unordered_set<const hlo::Instruction*> MembersBehind(const KernelView& view,
                                                          const hlo::Instruction& member,
                                                          int index);

// Returns whether the same kernel computes with a reduction's result. A softmax subtracts the
// maximum of a row from the row: nothing of that can start before the block's product is complete,
// whereas other epilogues follow it register by register.
bool SpreadsOver(const KernelView& view, const hlo::Instruction& reduction);

// Whole 32-bit vector registers that an array takes: the two fastest dimensions in
// tiles, two registers for 64-bit and complex elements.
int64_t VectorRegisters(const target::Target& target, const hlo::Shape& shape);

}  // namespace tpusim::kernels

#endif  // TPUSIM_WORKLOADS_KERNELS_VIEW_KERNEL_VIEW_H_
