// How much of an on-chip memory is in use, and has been at most.
#ifndef TPUSIM_MODELS_CHIP_LIVE_BYTES_H_
#define TPUSIM_MODELS_CHIP_LIVE_BYTES_H_

#include <string_view>

#include "absl/status/status.h"
#include "configs/units.h"

namespace tpusim::chip {

class LiveBytes {
 public:
  explicit LiveBytes(Bytes capacity) : capacity_(capacity) {}

  // `memory` and `what` are named in errors: by how much the capacity is exceeded.
  absl::Status Alloc(std::string_view memory, std::string_view what, Bytes bytes);
  absl::Status Free(std::string_view memory, std::string_view what, Bytes bytes);

  Bytes capacity() const { return capacity_; }
  Bytes live() const { return live_; }
  Bytes peak() const { return peak_; }

 private:
  const Bytes capacity_;
  Bytes live_{0};
  Bytes peak_{0};
};

}  // namespace tpusim::chip

#endif  // TPUSIM_MODELS_CHIP_LIVE_BYTES_H_
