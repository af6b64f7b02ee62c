// What an array costs by how it lies in memory, whatever kernel has it.
//
// The quantities that kernels are made of: bytes with padding at the rate of HBM, registers
// over the VALUs, registers over the cross-lane units. A pass that asks before there are kernels
// adds up what it expects of them. In cycles of the chip.
#ifndef TPUSIM_WORKLOADS_COST_ARRAY_COSTS_H_
#define TPUSIM_WORKLOADS_COST_ARRAY_COSTS_H_

#include <cstdint>
#include <vector>

#include "workloads/hlo/ir/shape.h"
#include "workloads/target/target.h"

namespace tpusim::cost {

class ArrayCosts {
 public:
  // The target must live as long.
  explicit ArrayCosts(const target::Target& target);

  double Memory(const hlo::Shape& array) const;      // once through HBM
  double Registers(const hlo::Shape& array) const;   // once through the VALUs
  double CrossLanes(const hlo::Shape& array) const;  // once through the cross-lane units
  // What crosses lanes or rows where `dims` are reduced.
  double Reduced(const hlo::Shape& array, const std::vector<int64_t>& dims) const;
  // A piece of these extents through HBM by itself, each of its rows in whole granules.
  double Piece(const hlo::Shape& array, const std::vector<int64_t>& extents) const;
  // Before a kernel computes: its launch, and its first DMA.
  double kernel() const { return kernel_; }

 private:
  const target::Target& target_;
  double bytes_per_cycle_;
  double register_, cross_lane_;  // of one register
  double kernel_;
};

}  // namespace tpusim::cost

#endif  // TPUSIM_WORKLOADS_COST_ARRAY_COSTS_H_
