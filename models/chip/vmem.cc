#include "models/chip/vmem.h"

#include <fmt/format.h>

#include <algorithm>

#include "configs/status_macros.h"

namespace tpusim::chip {

Vmem::Vmem(sc_core::sc_module_name name, const configs::ChipParams& params)
    : sc_module(name), capacity_(params.vmem.bytes * params.CoresPerDevice()) {}

absl::Status Vmem::Alloc(std::string_view what, Bytes bytes) {
  if (live_ + bytes > capacity_) {
    return absl::ResourceExhaustedError(fmt::format(
        "{}: {} needs {} bytes, but {} of {} are in use: {} too many", name(), what, bytes.value(),
        live_.value(), capacity_.value(), (live_ + bytes - capacity_).value()));
  }
  live_ += bytes;
  peak_ = std::max(peak_, live_);
  return absl::OkStatus();
}

absl::Status Vmem::Free(std::string_view what, Bytes bytes) {
  if (bytes > live_) {
    return absl::InternalError(fmt::format("{}: {} frees {} bytes, but only {} are in use", name(),
                                           what, bytes.value(), live_.value()));
  }
  live_ -= bytes;
  return absl::OkStatus();
}

Bytes Vmem::WindowsOf(const isa::Kernel& kernel) {
  Bytes sum{0};
  for (const isa::Window& window : kernel.windows) {
    if (window.space == isa::MemorySpace::kVmem) continue;  // a buffer that is there already
    sum += window.bytes * window.buffers;
  }
  return sum;
}

}  // namespace tpusim::chip
