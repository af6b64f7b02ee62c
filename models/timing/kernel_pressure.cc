#include "models/timing/kernel_pressure.h"

#include <algorithm>

#include "configs/memory.h"
#include "models/timing/kernel_time.h"
#include "models/timing/kernel_timing.h"

namespace tpusim::timing {
namespace {

isa::Kernel Without(isa::Kernel kernel, isa::WindowKind kind) {
  std::erase_if(kernel.windows, [&](const isa::Window& w) { return w.kind == kind; });
  return kernel;
}

}  // namespace

KernelPressure PressureOf(const configs::ChipParams& chip, const isa::Kernel& kernel) {
  KernelPressure p;
  const double steps = kernel.FullSteps();
  const isa::Block& block = kernel.block;
  const auto all_steps = [&](Picoseconds each) {
    return Picoseconds(static_cast<int64_t>(static_cast<double>(each.value()) * steps + 0.5));
  };
  p.time = KernelTime(chip, kernel);
  p.launch = LaunchTime(chip, kernel);
  p.compute = all_steps(StepTime(chip, block));
  p.overhead = all_steps(chip.tensor_core.grid_step_overhead);
  p.stalls = std::max(Picoseconds(0), p.time - p.launch - p.compute);
  const BlockCycles cycles = TimeBlock(chip, block);
  p.waits = all_steps(ToTime(cycles.mxu_fill + block.latency, chip.clock));

  const double clock = chip.clock.value(), seconds = ToSeconds(p.time);
  const auto add = [&](std::string_view unit, double busy) {
    p.units.push_back({unit, busy, seconds > 0 ? busy / clock / seconds : 0});
  };
  const SlotCycles slots = SlotsOf(chip, block);
  add("MXU", static_cast<double>(cycles.mxu.value()) * steps);
  add("VALU", slots.valu * steps);
  add("EUP", slots.eup * steps);
  add("XLU", slots.xlu * steps);
  add("load", slots.load * steps);
  add("store", slots.store * steps);
  add("scalar", static_cast<double>(block.scalar.value()) * steps);
  const size_t computes = p.units.size();
  const KernelTraffic traffic = TrafficOf(kernel);
  p.read = traffic.read;
  p.written = traffic.written;
  p.vmem = WindowBytes(kernel);
  add("DMA in", ToSeconds(TransferTime(p.read, configs::HbmRate(chip))) * clock);
  add("DMA out", ToSeconds(TransferTime(p.written, configs::HbmRate(chip))) * clock);

  p.without_input = KernelTime(chip, Without(kernel, isa::WindowKind::kInput));
  p.without_output = KernelTime(chip, Without(kernel, isa::WindowKind::kOutput));
  isa::Kernel idle = kernel;
  idle.block = {};
  p.without_compute = KernelTime(chip, idle);
  const Picoseconds least = std::min({p.without_input, p.without_output, p.without_compute});
  const auto fullest = std::max_element(
      p.units.begin(), p.units.begin() + static_cast<ptrdiff_t>(computes),
      [](const UnitPressure& a, const UnitPressure& b) { return a.cycles < b.cycles; });
  const double compute = fullest->cycles / clock;
  if (block.stated > Picoseconds(0)) {
    p.bound = "stated time";
  } else if (p.launch > p.time - p.launch) {
    p.bound = "launch";
  } else if (least < p.without_compute) {
    p.bound = p.without_input <= p.without_output ? "DMA in" : "DMA out";
  } else if (compute >= std::max(ToSeconds(p.waits), ToSeconds(p.overhead))) {
    p.bound = fullest->unit;
  } else {
    p.bound = p.waits > p.overhead ? "waits" : "steps";
  }
  return p;
}

}  // namespace tpusim::timing
