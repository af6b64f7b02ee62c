#include "models/chip/live_bytes.h"

#include <fmt/format.h>

#include <algorithm>

namespace tpusim::chip {

absl::Status LiveBytes::Alloc(std::string_view memory, std::string_view what, Bytes bytes) {
  if (live_ + bytes > capacity_) {
    return absl::ResourceExhaustedError(fmt::format(
        "{}: {} needs {} bytes, but {} of {} are in use: {} too many", memory, what, bytes.value(),
        live_.value(), capacity_.value(), (live_ + bytes - capacity_).value()));
  }
  live_ += bytes;
  peak_ = std::max(peak_, live_);
  return absl::OkStatus();
}

absl::Status LiveBytes::Free(std::string_view memory, std::string_view what, Bytes bytes) {
  if (bytes > live_) {
    return absl::InternalError(fmt::format("{}: {} frees {} bytes, but only {} are in use", memory,
                                           what, bytes.value(), live_.value()));
  }
  live_ -= bytes;
  return absl::OkStatus();
}

}  // namespace tpusim::chip
