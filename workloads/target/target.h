// The machine as passes see it: a view of the configuration.
//
// The room answers what compiler passes ask of a chip: usable memory, tiles, padding, policy.
// `Target` is its entry point. Numbers of the TPU compiler in the passes themselves were rejected:
// each is a row with its source (configs/policy.h).
#ifndef TPUSIM_WORKLOADS_TARGET_TARGET_H_
#define TPUSIM_WORKLOADS_TARGET_TARGET_H_

#include <cstdint>
#include <vector>

#include "configs/config.h"
#include "configs/instructions.h"
#include "configs/memory.h"
#include "configs/units.h"
#include "workloads/hlo/ir/shape.h"

namespace tpusim::target {

class Target {
 public:
  explicit Target(const configs::Config& config) : config_(&config) {}

  const configs::Config& config() const { return *config_; }
  const configs::ChipParams& chip() const { return config_->chip; }
  // Returns what the TPU compiler does on this chip where costs do not decide.
  const configs::Policy& policy() const { return chip().compiler; }
  // Returns what operations cost on this chip.
  const configs::Instructions& instructions() const { return *chip().instructions; }
  // Returns the bytes that arrays of a program may take of a memory, by its number in layouts.
  Bytes Usable(int64_t space) const { return configs::MemoryOfNumber(space).usable(chip()); }
  // Returns the memory that arrays are moved to: an on-chip memory that windows of kernels do not
  // share, if the chip has one, else VMEM.
  const configs::Memory& FastMemory() const;
  Bytes ScopedVmem() const { return chip().vmem.scoped_bytes; }

  // Tiles of the compiler's layout for an array, major tile first: the two fastest
  // dimensions in registers of sublanes x lanes; short second-minor extents
  // shrink the tile, one-dimensional arrays grow it.
  std::vector<int64_t> TileOf(const hlo::Shape& array) const;
  // The order of dimensions, fastest first, that arguments and results have unless the program
  // says otherwise: the one with the least padding; of equals, that with the later dimension
  // fastest, then second fastest. All others follow from the last to the first. (So the TPU
  // compiler lays out arguments of every shape that was tried, 6,700 of ranks 2 to 5.)
  std::vector<int64_t> DefaultOrder(const hlo::Shape& array) const;
  // Bytes of a buffer with its layout's padding; tuples sum their leaves.
  Bytes PaddedSize(const hlo::Shape& shape) const;

 private:
  const configs::Config* config_;
};

}  // namespace tpusim::target

#endif  // TPUSIM_WORKLOADS_TARGET_TARGET_H_
