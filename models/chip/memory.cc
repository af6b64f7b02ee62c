#include "models/chip/memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "configs/memory.h"

namespace tpusim::chip {

Memory::Memory(sc_core::sc_module_name name, const configs::Memory& row, events::Fluid& fluid,
               const configs::ChipParams& params)
    : sc_module(name), capacity_(row.capacity(params)) {
  if (row.rated && capacity_ > Bytes(0)) {
    resource_ = fluid.network().AddResource(this->name(), row.rate(params));
    fluid.network().TimeLimits(*resource_);
  }
}

absl::Status Memory::Alloc(std::string_view what, Bytes bytes) {
  if (live_ + bytes > capacity_) {
    return absl::ResourceExhaustedError(fmt::format(
        "{}: {} needs {} bytes, but {} of {} are in use: {} too many", name(), what, bytes.value(),
        live_.value(), capacity_.value(), (live_ + bytes - capacity_).value()));
  }
  live_ += bytes;
  peak_ = std::max(peak_, live_);
  return absl::OkStatus();
}

absl::Status Memory::Free(std::string_view what, Bytes bytes) {
  if (bytes > live_) {
    return absl::InternalError(fmt::format("{}: {} frees {} bytes, but only {} are in use", name(),
                                           what, bytes.value(), live_.value()));
  }
  live_ -= bytes;
  return absl::OkStatus();
}

}  // namespace tpusim::chip
