// Finds registers of a vector that are equal to each other, which are computed once.
//
// Lane numbers count along one dimension, a splat is the same everywhere, and what is broadcast is
// the same along the dimensions that it gets; elementwise work on such vectors is, too. Mosaic
// makes one operation per register and removes those that another has made already, so `row / 4`
// of a mask of 512 x 2048 costs 64 registers instead of 1024.
#ifndef TPUSIM_WORKLOADS_MOSAIC_REPEATS_H_
#define TPUSIM_WORKLOADS_MOSAIC_REPEATS_H_

#include <cstdint>
#include <unordered_map>

#include "configs/chip.h"
#include "workloads/mosaic/module.h"

namespace tpusim::mosaic {

class Repeats {
 public:
  // Finds along which dimensions the registers of an operation's results differ. Operands that have
  // not been added differ along all.
  void Add(const Operation& operation);
  // Returns the registers of a value that are not equal to one before.
  double DistinctRegisters(const Value& value, const configs::VpuParams& vpu) const;

 private:
  using Dimensions = uint64_t;  // a bit each

  Dimensions Differing(const Value& value) const;
  Dimensions DifferingResults(const Operation& operation) const;

  std::unordered_map<const Value*, Dimensions> differing_;
};

}  // namespace tpusim::mosaic

#endif  // TPUSIM_WORKLOADS_MOSAIC_REPEATS_H_
