// Kernels without a dot: elementwise chains, reductions, slices, copies, updates.
// One grid dimension cuts the work into equal parts; what is large moves with it,
// what is small is fetched once.

#include <algorithm>
#include <cmath>
#include <optional>

#include "configs/status_macros.h"
#include "configs/vector_register.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/kernels/tiling/kernels.h"
#include "workloads/kernels/tiling/stated_windows.h"
#include "workloads/kernels/vector_work/vector_cost.h"
#include "workloads/kernels/view/product.h"
#include "workloads/kernels/view/whole_rows.h"

namespace tpusim::kernels {
namespace {

using hlo::Instruction;
using hlo::Opcode;
using hlo::Shape;

// A single elementwise operation or reduction that nothing was fused to. The TPU
// compiler does not search for its tiles: it runs whole if no array takes more registers
// than a window may have and two buffers of everything, and operands once more unpacked,
// fit into what windows may use; else in windows of `lone_window_registers` of the largest
// array, or of `window_registers` where `lone_windows` such windows fit. (Read off the steps in
// the rows of validation/kernels; what all of them have in common, no more.)
bool IsLone(const KernelView& view) {
  if (view.instruction->opcode() == Opcode::kFusion) return false;
  int work = 0;
  for (const Instruction* m : view.members) {
    switch (m->opcode()) {
      case Opcode::kBitcast:
      case Opcode::kConstant:
        continue;
      case Opcode::kReduce:
      case Opcode::kSlice:
      case Opcode::kIota:
      case Opcode::kPad:
        break;
      default:
        if (!hlo::IsElementwise(*m) || m->opcode() == Opcode::kCopy) return false;
    }
    ++work;
  }
  return work == 1;
}

// number: rounding
int64_t Whole(double registers) { return static_cast<int64_t>(std::ceil(registers - 1e-6)); }

// Steps below which a window would hold more.
int64_t FewestSteps(const KernelView& view, const target::Target& target) {
  const bool relayout = std::any_of(view.members.begin(), view.members.end(), [](const auto* m) {
    return m->opcode() == Opcode::kTranspose || IsRelayout(*m);
  });
  const configs::Policy& rules = target.policy();
  const int64_t window = relayout ? rules.relayout_window_registers : rules.window_registers;
  return std::max<int64_t>(
      1, CeilDiv(Whole(MostRegisters(view, target)), window * target.chip().CoresPerDevice()));
}

// Steps above which a block would not hold rows whole that it has to.
int64_t MostSteps(const KernelView& view, const target::Target& target, int64_t limit) {
  for (const Instruction* reduction : ReductionsSpreadIn(view.members, target.policy())) {
    const int64_t all = VectorRegisters(target, reduction->operand(0)->shape());
    limit = std::min(limit, std::max<int64_t>(1, all / RowRegisters(target, *reduction)));
  }
  return limit;
}

int64_t LoneSteps(const KernelView& view, const target::Target& target) {
  const configs::Policy& rules = target.policy();
  const int64_t largest = Whole(MostRegisters(view, target));
  Bytes room(0);
  for (const KernelInput& input : view.inputs) {
    // number: bytes of a word
    if (BytesOf(input, target) > rules.uncut_bytes) room += BytesOf(input, target) * 4;
  }
  for (const KernelOutput& output : view.outputs) {
    if (BytesOf(output, target) > rules.uncut_bytes) room += BytesOf(output, target) * 2;
  }
  // The cores of a megacore take a window each.
  const int64_t cores = target.chip().CoresPerDevice();
  if (largest <= rules.window_registers && room <= target.ScopedVmem() * cores) return 1;
  const int64_t register_bytes = configs::RegisterBytes(target.chip().vpu);
  const bool large =
      rules.lone_windows * rules.window_registers * register_bytes <= target.ScopedVmem().value();
  const int64_t registers = (large ? rules.window_registers : rules.lone_window_registers) * cores;
  return std::max<int64_t>(1, CeilDiv(largest, registers));
}

}  // namespace

absl::StatusOr<isa::Kernel> BuildLoopKernel(const KernelView& view, const target::Target& target) {
  VectorWork work;
  for (size_t n = 0; n < view.members.size(); ++n) {
    ASSIGN_OR_RETURN(const VectorWork one, VectorWorkOf(*view.members[n], target));
    work += one * view.shares[n];
  }
  work.latency = std::max(work.latency, static_cast<double>(target.chip().vpu.latency_cycles));
  Bytes largest(1);
  for (const KernelOutput& output : view.outputs) {
    work.valu += RepackWork(output.written, target);
    work.store +=
        PackedShare(output.written) * static_cast<double>(VectorRegisters(target, output.written));
    largest = std::max(largest, BytesOf(output, target));
  }
  for (const KernelInput& input : view.inputs) {
    work.valu += UnpackWork(input, target);
    work.load += PackedShare(input.value->shape()) * RegistersOf(input, target);
    largest = std::max(largest, BytesOf(input, target));
  }

  const int64_t register_bytes = configs::RegisterBytes(target.chip().vpu);
  // Windows of one register are the smallest.
  const int64_t smallest = std::max<int64_t>(1, CeilDiv(largest.value(), register_bytes));
  std::vector<int64_t> counts = CandidateCounts(smallest, smallest);
  // A product on the vector units is tiled like one on the arrays.
  const bool product = view.FindMember(IsProduct) != nullptr;
  const int64_t fewest = product ? 1 : FewestSteps(view, target);
  const int64_t most = MostSteps(view, target, std::max(smallest, fewest));
  std::erase_if(counts, [&](int64_t count) { return count < fewest || count > most; });
  if (counts.empty() || counts.front() != fewest) counts.push_back(std::min(fewest, most));
  if (IsLone(view)) counts = {LoneSteps(view, target)};
  const std::optional<StatedWindows> stated = StatedWindowsOf(*view.instruction);
  const bool grid_stated = stated && !stated->iterations.empty();
  if (grid_stated) counts = {stated->Steps()};
  const std::vector<isa::Window> whole = WholeWindows(view, target);
  const auto buffers = static_cast<int32_t>(target.chip().tensor_core.loop_buffers);
  FastestKernel fastest(target);
  for (int64_t parts : counts) {
    isa::Kernel kernel;
    kernel.grid = {{parts, 1.0}};
    kernel.windows = whole;
    for (isa::Window& w : kernel.windows) {
      if (parts == 1 || w.bytes <= target.policy().uncut_bytes) continue;
      w.bytes = Bytes(CeilDiv(w.bytes.value(), parts));
      w.moves_with = 1;
      w.buffers = w.kind == isa::WindowKind::kInput ? buffers : 2;
    }
    kernel.block = BlockOf(work, parts);
    // The latency of a chain is paid in every step.
    kernel.block.latency = std::max(kernel.block.latency, Cycles(target.chip().vpu.latency_cycles));
    if (grid_stated && FitsStated(kernel, target)) return kernel;
    fastest.Offer(kernel, Bytes(0));
  }
  return fastest.Best(*view.instruction);
}

}  // namespace tpusim::kernels
