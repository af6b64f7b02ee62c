#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/timing/kernel_time.h"
#include "models/timing/kernel_timing.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/kernels/opaque/custom_cost.h"

namespace tpusim::kernels {
namespace {

using hlo::Instruction;

// So many steps spread the bytes over the kernel; more where windows would not fit.
constexpr int64_t kSteps = 16;  // number: effort: steps of such a kernel

// Returns the largest number from `fits` on that is not too much; `beyond` is.
template <typename Fits>
int64_t LargestThat(int64_t fits, int64_t beyond, const Fits& does) {
  while (beyond - fits > 1) {
    const int64_t middle = fits + (beyond - fits) / 2;
    (does(middle) ? fits : beyond) = middle;
  }
  return fits;
}

}  // namespace

isa::Kernel BuildKernelOfTime(Picoseconds time, Bytes read, Bytes written, bool products,
                              const std::string& name, const target::Target& target) {
  const configs::ChipParams& chip = target.chip();
  isa::Kernel kernel;
  const auto add = [&](isa::WindowKind kind, Bytes bytes, int64_t steps) {
    if (bytes == Bytes(0)) return;
    isa::Window window;
    window.kind = kind;
    window.operand = name;
    window.bytes = Bytes(bytes.value() / steps);
    window.moves_with = 1;
    kernel.windows.push_back(window);
  };
  int64_t steps = std::clamp<int64_t>(std::max(read, written).value(), 1, kSteps);
  for (;; steps *= 2) {
    kernel.windows.clear();
    add(isa::WindowKind::kInput, read, steps);
    add(isa::WindowKind::kOutput, written, steps);
    if (timing::WindowBytes(kernel) <= target.ScopedVmem()) break;
  }
  kernel.grid = {{steps, 1.0}};
  kernel.block.stated_products = products;
  // How much of the first and the last transfer stands alone depends on the length of a step.
  const auto takes = [&](int64_t step) {
    kernel.block.stated = Picoseconds(step);
    return timing::KernelTime(chip, kernel);
  };
  takes(LargestThat(1, time.value() + 1, [&](int64_t step) { return takes(step) <= time; }));
  return kernel;
}

namespace {

// Returns the time of the shortest kernel that moves so much.
Picoseconds Least(Bytes bytes, Bytes results, const target::Target& target) {
  const Bytes written = std::min(results, bytes);
  const isa::Kernel kernel =
      BuildKernelOfTime(Picoseconds(1), bytes - written, written, /*products=*/false, "", target);
  return timing::KernelTime(target.chip(), kernel);
}

std::string Text(Picoseconds time) { return fmt::format("{:.4g} us", ToMicroseconds(time)); }

std::string Cut(const Instruction& call, CustomCost& cost, const target::Target& target) {
  const Picoseconds time = *cost.time;
  std::string sentence = fmt::format("takes {}, as stated", Text(time));
  const Bytes results = target.PaddedSize(call.shape());
  const Picoseconds launch = Least(Bytes(0), results, target);
  if (launch > time) {
    sentence = fmt::format("takes {}, the least that a kernel takes, not the {} that are stated",
                           Text(launch), Text(time));
    cost.time = launch;
  }
  const Flops products = MatrixFlops(cost, target);
  const Picoseconds computed = ComputeTime(products, target.chip().MxuPeak());
  if (computed > *cost.time) {
    const double share =
        static_cast<double>(cost.time->value()) / static_cast<double>(computed.value());
    const Flops counted(static_cast<int64_t>(share * static_cast<double>(products.value())));
    sentence += fmt::format("; its {:.4g} FLOPs of products take at least {}: {:.4g} are counted",
                            static_cast<double>(products.value()), Text(computed),
                            static_cast<double>(counted.value()));
    // FLOPs of which nothing else is known are products.
    cost.flops = counted;
    cost.products.clear();
    cost.stages.clear();
    cost.pipeline.reset();
  }
  if (const Picoseconds moved = Least(cost.bytes, results, target); moved > *cost.time) {
    const int64_t fits = LargestThat(0, cost.bytes.value(), [&](int64_t bytes) {
      return Least(Bytes(bytes), results, target) <= *cost.time;
    });
    sentence += fmt::format("; its {} bytes take at least {}: {} are counted", cost.bytes.value(),
                            Text(moved), fits);
    cost.bytes = Bytes(fits);
  }
  return sentence;
}

}  // namespace

isa::Kernel BuildTimedKernel(const CustomCost& cost, Bytes results, const std::string& name,
                             const target::Target& target) {
  const Bytes written = std::min(results, cost.bytes);
  const bool products = MatrixFlops(cost, target) > Flops(0);
  return BuildKernelOfTime(*cost.time, cost.bytes - written, written, products, name, target);
}

void HoldToStatedTimes(hlo::Module& module, const target::Target& target) {
  for (hlo::Computation* computation : module.computations()) {
    for (Instruction* i : computation->instructions()) {
      if (i->opcode() != hlo::Opcode::kCustomCall) continue;
      absl::StatusOr<CustomCost> cost = CustomCostOf(*i);
      if (!cost.ok() || !cost->time) continue;
      cost->assumed.push_back(Cut(*i, *cost, target));
      SetCustomCost(i, *cost);
    }
  }
}

}  // namespace tpusim::kernels
