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
#include "models/chip/live_bytes.h"
#include "models/events/fluid.h"
#include "models/steady/state.h"

namespace tpusim::chip {

class Cmem : public sc_core::sc_module, public steady::Stateful {
 public:
  Cmem(sc_core::sc_module_name name, events::Fluid& fluid, const configs::ChipParams& params);

  // nullopt: the chip has none.
  const std::optional<flow::ResourceId>& resource() const { return resource_; }

  // Error: by how much the capacity is exceeded, and by whom.
  absl::Status Alloc(std::string_view what, Bytes bytes) {
    return live_.Alloc(name(), what, bytes);
  }
  absl::Status Free(std::string_view what, Bytes bytes) { return live_.Free(name(), what, bytes); }

  Bytes capacity() const { return live_.capacity(); }
  Bytes live() const { return live_.live(); }
  Bytes peak() const { return live_.peak(); }

  void Visit(steady::StateVisitor& visitor) override { visitor.Same(live_.live()); }

 private:
  LiveBytes live_;
  std::optional<flow::ResourceId> resource_;
};

}  // namespace tpusim::chip

#endif  // TPUSIM_MODELS_CHIP_CMEM_H_
