#include "models/timing/reduce_timing.h"

#include <algorithm>

#include "models/timing/kernel_timing.h"

namespace tpusim::timing {

double VregOpsPerSecond(const configs::ChipParams& chip) {
  return static_cast<double>(chip.vpu.alus_per_lane * chip.CoresPerDevice()) * chip.clock.value();
}

double VregOpsPerByte(const configs::ChipParams& chip, const isa::ReduceAdd& reduce) {
  const int64_t elements = chip.vpu.sublanes * chip.vpu.lanes;
  const int64_t registers = CeilDiv(reduce.element_bytes, 4);  // per `elements` elements
  return static_cast<double>(reduce.valu_per_vreg * registers) /
         static_cast<double>(elements * reduce.element_bytes);
}

double AddsPerSecond(const configs::ChipParams& chip) {
  const configs::SparseCoreParams& cores = chip.sparse_core;
  const double per_device = static_cast<double>(cores.count) / static_cast<double>(chip.devices);
  return per_device * static_cast<double>(cores.tiles * cores.lanes) * chip.clock.value();
}

double AddsPerByte(const isa::ReduceAdd& reduce) {
  const int64_t lanes = CeilDiv(reduce.element_bytes, 4);
  return static_cast<double>(lanes) / static_cast<double>(reduce.element_bytes);
}

Picoseconds ReduceTail(const configs::ChipParams& chip, const isa::ReduceAdd& reduce, Bytes message,
                       bool to_hbm) {
  const Bytes window = std::min(message, chip.ici.reduce_window);
  const double bytes = static_cast<double>(window.value());
  const double seconds_per_byte = reduce.sparse_core
                                      ? AddsPerByte(reduce) / AddsPerSecond(chip)
                                      : VregOpsPerByte(chip, reduce) / VregOpsPerSecond(chip);
  const Picoseconds add = FromSeconds(bytes * seconds_per_byte);
  return to_hbm ? add + TransferTime(window, HbmRate(chip)) : add;
}

}  // namespace tpusim::timing
