// The memories that a value may live in, a row each.
//
// A layout names one by its number, S(1) for VMEM. What passes and the lowering need to
// know of a memory is in its row: another memory is another row.
#ifndef TPUSIM_WORKLOADS_TARGET_MEMORY_SPACE_H_
#define TPUSIM_WORKLOADS_TARGET_MEMORY_SPACE_H_

#include <cstdint>
#include <span>
#include <string_view>

#include "configs/chip.h"
#include "configs/units.h"
#include "models/isa/program.h"

namespace tpusim::target {

struct MemorySpace {
  int64_t number;  // in layouts
  std::string_view name;
  isa::MemorySpace isa;
  // Whether arrays are planned to fit in it: each has a buffer from the instruction that
  // makes it to its last reader.
  bool planned;
  // What the arrays of a program may take of it, per device; 0: the chip has none.
  Bytes (*capacity)(const configs::ChipParams& chip);
};

std::span<const MemorySpace> MemorySpaces();
// HBM for numbers that are not in the table: what they are is another compiler's matter.
const MemorySpace& MemorySpaceOf(int64_t number);

}  // namespace tpusim::target

#endif  // TPUSIM_WORKLOADS_TARGET_MEMORY_SPACE_H_
