// Kernels without a dot: elementwise chains, reductions, slices, copies, updates.
// One grid dimension cuts the work into equal parts; what is large moves with it,
// what is small is fetched once.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "configs/status_macros.h"
#include "workloads/hlo/opcode.h"
#include "workloads/lowering/kernels/kernels.h"
#include "workloads/lowering/kernels/tile_search.h"
#include "workloads/lowering/kernels/vector_cost.h"

namespace tpusim::lowering {
namespace {

using hlo::Instruction;
using hlo::Opcode;
using hlo::Shape;

// What is written: an update in place writes only the update.
const Shape& WrittenShape(const KernelView& view) {
  return view.root->opcode() == Opcode::kDynamicUpdateSlice ? view.root->operand(1)->shape()
                                                            : view.root->shape();
}

// Arrays below one register row per step cannot be cut; they stay whole.
constexpr int64_t kWholeBytes = 32 * kKiB;

isa::Window MakeWindow(isa::WindowKind kind, Bytes bytes, int64_t parts, std::string operand) {
  isa::Window w;
  w.kind = kind;
  w.operand = std::move(operand);
  const bool moves = parts > 1 && bytes.value() > kWholeBytes;
  w.bytes = moves ? Bytes(CeilDiv(bytes.value(), parts)) : bytes;
  w.moves_with = moves ? 1U : 0U;
  w.buffers = moves ? 2 : 1;
  return w;
}

}  // namespace

absl::StatusOr<isa::Kernel> BuildLoopKernel(const KernelView& view, const passes::Target& target) {
  VectorWork work;
  for (const Instruction* m : view.members) {
    ASSIGN_OR_RETURN(const VectorWork one, VectorWorkOf(*m, target));
    work += one;
  }
  const Shape& written = WrittenShape(view);
  double load = 0, store = static_cast<double>(VectorRegisters(target, written));
  Bytes largest = target.PaddedSize(written);
  for (const KernelInput& input : view.inputs) {
    if (!input.reads) continue;
    work.valu += RepackWork(input.accessed, target);
    load += static_cast<double>(VectorRegisters(target, input.accessed));
    largest = std::max(largest, target.PaddedSize(input.accessed));
  }
  work.valu += RepackWork(written, target);

  const int64_t register_bytes = target.chip().vpu.sublanes * target.chip().vpu.lanes * 4;
  constexpr int64_t kMaxSteps = 1 << 16;
  FastestKernel fastest(target);
  for (int64_t parts :
       CandidateCounts(std::max<int64_t>(1, CeilDiv(largest.value(), register_bytes)), kMaxSteps)) {
    isa::Kernel kernel;
    kernel.grid = {{parts, 1.0}};
    for (const KernelInput& input : view.inputs) {
      if (!input.reads) continue;
      kernel.windows.push_back(MakeWindow(isa::WindowKind::kInput,
                                          target.PaddedSize(input.accessed), parts,
                                          input.value->name()));
    }
    kernel.windows.push_back(MakeWindow(isa::WindowKind::kOutput, target.PaddedSize(written), parts,
                                        view.instruction->name()));
    const auto per_step = [&](double total) {
      return static_cast<int64_t>(std::ceil(total / static_cast<double>(parts)));
    };
    kernel.block.valu = per_step(work.valu);
    kernel.block.eup = per_step(work.eup);
    kernel.block.xlu = per_step(work.xlu);
    kernel.block.load = per_step(load);
    kernel.block.store = per_step(store);
    kernel.block.latency = Cycles(target.chip().vpu.latency_cycles);
    fastest.Offer(kernel, Bytes(0));
  }
  if (!fastest.best()) {
    return UserError(fmt::format("no tiling of {} fits the {} bytes of VMEM that a kernel may use",
                                 view.instruction->Describe(), target.ScopedVmem().value()));
  }
  return *fastest.best();
}

absl::StatusOr<isa::Kernel> BuildKernel(const Instruction& instruction,
                                        const passes::Target& target) {
  if (!instruction.shape().IsArray()) {
    return NoRule(fmt::format("no kernel for {}: op '{}' with a tuple result has no kernel rule",
                              instruction.Describe(), hlo::OpcodeName(instruction.opcode())));
  }
  const KernelView view = ViewKernel(instruction);
  return view.FindMember(Opcode::kDot) != nullptr ? BuildDotKernel(view, target)
                                                  : BuildLoopKernel(view, target);
}

}  // namespace tpusim::lowering
