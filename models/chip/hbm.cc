#include "models/chip/hbm.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/timing/kernel_timing.h"

namespace tpusim::chip {

Hbm::Hbm(sc_core::sc_module_name name, events::Fluid& fluid, const configs::ChipParams& params)
    : sc_module(name),
      rate_(timing::HbmRate(params)),
      usable_(params.hbm.bytes - params.hbm.reserved_bytes),
      resource_(fluid.network().AddResource(this->name(), rate_)) {}

absl::Status Hbm::Alloc(std::string_view what, Bytes bytes) {
  if (live_ + bytes > usable_) {
    return absl::ResourceExhaustedError(fmt::format(
        "{}: {} needs {} bytes, but {} of {} usable ones are live: {} too many", name(), what,
        bytes.value(), live_.value(), usable_.value(), (live_ + bytes - usable_).value()));
  }
  live_ += bytes;
  peak_ = std::max(peak_, live_);
  return absl::OkStatus();
}

absl::Status Hbm::Free(std::string_view what, Bytes bytes) {
  if (bytes > live_) {
    return absl::InternalError(fmt::format("{}: {} frees {} bytes, but only {} are live", name(),
                                           what, bytes.value(), live_.value()));
  }
  live_ -= bytes;
  return absl::OkStatus();
}

}  // namespace tpusim::chip
