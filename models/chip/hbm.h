// The high-bandwidth memory of a device: one resource of the fluid that reads
// and writes share, and a count of the bytes that are live.
#ifndef TPUSIM_MODELS_CHIP_HBM_H_
#define TPUSIM_MODELS_CHIP_HBM_H_

#include <string_view>
#include <systemc>

#include "absl/status/status.h"
#include "configs/chip.h"
#include "configs/units.h"
#include "models/events/fluid.h"
#include "models/steady/state.h"

namespace tpusim::chip {

class Hbm : public sc_core::sc_module, public steady::Stateful {
 public:
  Hbm(sc_core::sc_module_name name, events::Fluid& fluid, const configs::ChipParams& params);

  flow::ResourceId resource() const { return resource_; }
  BytesPerSecond rate() const { return rate_; }

  // Error: by how much what a program may use is exceeded, and by whom.
  absl::Status Alloc(std::string_view what, Bytes bytes);
  absl::Status Free(std::string_view what, Bytes bytes);

  Bytes usable() const { return usable_; }
  Bytes live() const { return live_; }
  Bytes peak() const { return peak_; }

  void Visit(steady::StateVisitor& visitor) override { visitor.Same(live_); }

 private:
  const BytesPerSecond rate_;
  const Bytes usable_;
  const flow::ResourceId resource_;
  Bytes live_{0};
  Bytes peak_{0};
};

}  // namespace tpusim::chip

#endif  // TPUSIM_MODELS_CHIP_HBM_H_
