#include "workloads/lowering/operations.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "configs/status_macros.h"
#include "models/timing/kernel_time.h"
#include "models/timing/kernel_timing.h"
#include "workloads/hlo/ir/annotations.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/rules/cost.h"
#include "workloads/kernels/opaque/custom_cost.h"
#include "workloads/kernels/tiling/stated_windows.h"
#include "workloads/kernels/view/product.h"

namespace tpusim::lowering {
namespace {

using hlo::Computation;
using hlo::Execution;
using hlo::Instruction;
using hlo::Opcode;

// Returns the FLOPs of a kernel's product on the arrays: as many times as its format takes passes.
absl::StatusOr<Flops> OnArrays(const Instruction& product, const Instruction& in,
                               const isa::Kernel& kernel, const target::Target& target) {
  const configs::ChipParams& chip = target.chip();
  isa::NumberFormat format = kernel.block.mxu.format;
  // A kernel that takes as long as is stated computes something that takes so long.
  const bool stated = hlo::annotations::kTakesEstimate.On(in);
  if (stated) {
    const absl::StatusOr<kernels::Product> on_arrays = kernels::ProductOf(product, target);
    if (on_arrays.ok()) format = on_arrays->format;
  }
  ASSIGN_OR_RETURN(const hlo::Cost cost, hlo::CostOf(product));
  const double passes = timing::FormatPasses(chip.mxu, format);
  const Flops flops(ToCount(std::round(static_cast<double>(cost.flops.value()) * passes)));
  if (!stated) return flops;
  // Who stated it may have thought that it takes less than the arrays do.
  const double seconds = ToSeconds(timing::KernelTime(chip, kernel));
  return std::min(flops, Flops(ToCount(std::floor(chip.MxuPeak().value() * seconds))));
}

absl::Status SumTotals(const Computation& computation, int64_t times, const Operations& operations,
                       const target::Target& target, isa::ProgramInfo& info) {
  for (const Instruction* i : computation.Order()) {
    const Operation& op = operations.of.at(i);
    if (op.what == Execution::kLoop) {
      for (const Computation* inner : i->called()) {
        RETURN_IF_ERROR(
            SumTotals(*inner, SaturatedProduct(times, op.trips), operations, target, info));
      }
    } else if (op.what == Execution::kCall) {
      RETURN_IF_ERROR(SumTotals(*i->called()[0], times, operations, target, info));
    } else if (op.what == Execution::kBranch) {
      if (const auto turns = operations.turns.find(i); turns != operations.turns.end()) {
        const hlo::LoopInTurns& all = turns->second;  // `times` are the passes of all together
        for (size_t b = 0; b < all.of_branches.size(); ++b) {
          const int64_t own = SaturatedProduct(times / all.trips, all.of_branches[b]);
          if (own > 0) RETURN_IF_ERROR(SumTotals(*i->called()[b], own, operations, target, info));
        }
        continue;
      }
      // What partition 0 does counts for all.
      const int32_t taken = operations.branches[op.branch].taken.front();
      RETURN_IF_ERROR(SumTotals(*i->called()[taken], times, operations, target, info));
    }
    if (op.what != Execution::kKernel) continue;
    const isa::OpInfo& o = info.ops[op.op];
    info.hardware_flops += o.flops * times;
    info.model_flops += o.model_flops * times;
    info.hbm_bytes += o.hbm_bytes * times;
    if (const Instruction* dot = kernels::ProductIn(*i)) {
      ASSIGN_OR_RETURN(const Flops flops, OnArrays(*dot, *i, op.kernel, target));
      info.mxu_flops += flops * times;
    } else if (i->opcode() == Opcode::kCustomCall && !kernels::HasKernelOfItsOwn(*i)) {
      ASSIGN_OR_RETURN(const kernels::CustomCost custom, kernels::CustomCostOf(*i));
      info.mxu_flops += kernels::MatrixFlops(custom, target) * times;
    }
  }
  return absl::OkStatus();
}

// Sums stop at the largest number there is.
absl::Status CheckTotals(const isa::ProgramInfo& info) {
  const auto uncounted = [](const char* what) {
    return UserError(fmt::format(
        "the program has more than {:.2g} {} per device, which is more than can be counted; give "
        "its loops fewer passes (--trip-count), its kernels less to do (--kernel-cost)",
        static_cast<double>(Flops::Max().value()), what));
  };
  if (std::max(info.hardware_flops, info.mxu_flops) == Flops::Max()) return uncounted("FLOPs");
  return info.hbm_bytes == Bytes::Max() ? uncounted("bytes through HBM") : absl::OkStatus();
}

}  // namespace

absl::Status AddTotals(const Computation& entry, const Operations& operations,
                       const target::Target& target, isa::ProgramInfo& info) {
  RETURN_IF_ERROR(SumTotals(entry, 1, operations, target, info));
  return CheckTotals(info);
}

}  // namespace tpusim::lowering
