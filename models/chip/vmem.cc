#include "models/chip/vmem.h"

namespace tpusim::chip {

Vmem::Vmem(sc_core::sc_module_name name, const configs::ChipParams& params)
    : sc_module(name), live_(params.vmem.bytes * params.CoresPerDevice()) {}

Bytes Vmem::WindowsOf(const isa::Kernel& kernel) {
  Bytes sum{0};
  for (const isa::Window& window : kernel.windows) {
    if (window.space == isa::MemorySpace::kVmem) continue;  // a buffer that is there already
    sum += window.bytes * window.buffers;
  }
  return sum;
}

}  // namespace tpusim::chip
