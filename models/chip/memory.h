// A memory of a device, as its row of the table says (configs/memory.h).
//
// Two things matter of it. Whether everything fits: it counts the bytes that are live, buffers that
// the compiler placed here and, in VMEM, the windows of the kernel that runs. And how fast it
// serves transfers: a memory with a rate is a resource of the fluid that reads and writes share.
#ifndef TPUSIM_MODELS_CHIP_MEMORY_H_
#define TPUSIM_MODELS_CHIP_MEMORY_H_

#include <optional>
#include <string_view>
#include <systemc>

#include "absl/status/status.h"
#include "configs/chip.h"
#include "configs/memory.h"
#include "configs/units.h"
#include "models/chip/interfaces.h"
#include "models/events/fluid.h"
#include "models/steady/state.h"

namespace tpusim::chip {

class Memory : public sc_core::sc_module, public MemoryInterface, public steady::Stateful {
 public:
  Memory(sc_core::sc_module_name name, const configs::Memory& row, events::Fluid& fluid,
         const configs::ChipParams& params);

  std::optional<flow::ResourceId> resource() const override { return resource_; }
  absl::Status Alloc(std::string_view what, Bytes bytes) override;
  absl::Status Free(std::string_view what, Bytes bytes) override;
  Bytes live() const override { return live_; }

  Bytes capacity() const { return capacity_; }
  Bytes peak() const { return peak_; }

  // Visits the live bytes. In a loop with other names each iteration may leave something behind.
  void Visit(steady::StateVisitor& visitor) override {
    if (!visitor.new_names()) {
      visitor.Same(live_);
    } else {
      visitor.Counter(live_);
    }
  }

 private:
  const Bytes capacity_;
  std::optional<flow::ResourceId> resource_;
  Bytes live_{0};
  Bytes peak_{0};
};

}  // namespace tpusim::chip

#endif  // TPUSIM_MODELS_CHIP_MEMORY_H_
