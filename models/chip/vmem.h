// The vector memory of a device: who lives in it.
//
// It has no time of its own (loads and stores are slots of a block, transfers are
// limited by HBM); what matters is whether everything fits: buffers that the
// compiler placed here, and the windows of the kernel that runs.
#ifndef TPUSIM_MODELS_CHIP_VMEM_H_
#define TPUSIM_MODELS_CHIP_VMEM_H_

#include <string_view>
#include <systemc>

#include "absl/status/status.h"
#include "configs/chip.h"
#include "configs/units.h"
#include "models/chip/live_bytes.h"
#include "models/isa/program.h"
#include "models/steady/state.h"

namespace tpusim::chip {

class Vmem : public sc_core::sc_module, public steady::Stateful {
 public:
  Vmem(sc_core::sc_module_name name, const configs::ChipParams& params);

  // Error: by how much the capacity is exceeded, and for whom.
  absl::Status Alloc(std::string_view what, Bytes bytes) {
    return live_.Alloc(name(), what, bytes);
  }
  absl::Status Free(std::string_view what, Bytes bytes) { return live_.Free(name(), what, bytes); }

  Bytes capacity() const { return live_.capacity(); }
  Bytes live() const { return live_.live(); }
  Bytes peak() const { return live_.peak(); }

  // VMEM that the windows of a kernel take: each as often as it is buffered.
  static Bytes WindowsOf(const isa::Kernel& kernel);

  void Visit(steady::StateVisitor& visitor) override { visitor.Same(live_.live()); }

 private:
  LiveBytes live_;
};

}  // namespace tpusim::chip

#endif  // TPUSIM_MODELS_CHIP_VMEM_H_
