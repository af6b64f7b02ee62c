// The on-chip memory beside VMEM that some chips have: like HBM a resource of the
// fluid that reads and writes share, and a count of the bytes that are live.
#ifndef TPUSIM_MODELS_CHIP_CMEM_H_
#define TPUSIM_MODELS_CHIP_CMEM_H_

#include <optional>
#include <string_view>
#include <systemc>

#include "absl/status/status.h"
#include "configs/chip.h"
#include "configs/units.h"
#include "models/chip/fluid.h"

namespace tpusim::chip {

class Cmem : public sc_core::sc_module {
 public:
  Cmem(sc_core::sc_module_name name, Fluid& fluid, const configs::ChipParams& params);

  // nullopt: the chip has none.
  const std::optional<flow::ResourceId>& resource() const { return resource_; }

  // Error: by how much the capacity is exceeded, and by whom.
  absl::Status Alloc(std::string_view what, Bytes bytes);
  absl::Status Free(std::string_view what, Bytes bytes);

  Bytes capacity() const { return capacity_; }
  Bytes live() const { return live_; }
  Bytes peak() const { return peak_; }

 private:
  const Bytes capacity_;
  std::optional<flow::ResourceId> resource_;
  Bytes live_{0};
  Bytes peak_{0};
};

}  // namespace tpusim::chip

#endif  // TPUSIM_MODELS_CHIP_CMEM_H_
