// The time of a kernel by unit: what llvm-mca prints for a loop, for a kernel's pipeline.
//
// A step keeps every unit busy for so many cycles: the arrays, each slot of the vector unit, the
// DMA channel in either direction. What is not hidden beside another unit adds to the step: arrays
// that fill, stages of the body that wait for one another, the step's own overhead. A step that
// waits for its windows stalls. All of it is over the whole kernel here; the time with one cost
// taken away is that of the same kernel without its input windows, without its output windows or
// without its block, and tells what it is bound by.
#ifndef TPUSIM_MODELS_TIMING_KERNEL_PRESSURE_H_
#define TPUSIM_MODELS_TIMING_KERNEL_PRESSURE_H_

#include <string_view>
#include <vector>

#include "configs/chip.h"
#include "configs/units.h"
#include "models/isa/program.h"

namespace tpusim::timing {

struct UnitPressure {
  std::string_view unit;  // "MXU", "VALU", "EUP", "XLU", "load", "store", "scalar", "DMA in", ...
  double cycles = 0;      // of the whole kernel
  double share = 0;       // of its time
};

struct KernelPressure {
  Picoseconds time{0};
  Picoseconds launch{0};    // before its first DMA
  Picoseconds compute{0};   // of all steps
  Picoseconds stalls{0};    // steps wait for windows; the last of those out is waited for
  Picoseconds overhead{0};  // of `compute`: what each step takes beside its block
  Picoseconds waits{0};     // of `compute`: arrays fill, and stages wait for one another
  std::vector<UnitPressure> units;
  std::string_view
      bound;  // a unit; "launch"; "waits": of stages for one another; "steps": overhead
  Bytes read{0}, written{0};  // HBM
  Bytes vmem{0};              // of all windows
  Picoseconds without_input{0}, without_output{0}, without_compute{0};
};

KernelPressure PressureOf(const configs::ChipParams& chip, const isa::Kernel& kernel);

}  // namespace tpusim::timing

#endif  // TPUSIM_MODELS_TIMING_KERNEL_PRESSURE_H_
