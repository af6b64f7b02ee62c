// Answers of the compiler about one slice that other compilations for it may use again: kernels
// that were searched for, and how collectives are done.
#ifndef TPUSIM_WORKLOADS_COMPILER_SLICE_CACHE_H_
#define TPUSIM_WORKLOADS_COMPILER_SLICE_CACHE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "configs/config.h"
#include "workloads/collectives/collective.h"
#include "workloads/cost/chip_cost_model.h"
#include "workloads/kernels/tiling/kernel_library.h"
#include "workloads/target/target.h"

namespace tpusim::compiler {

// The compiler asks of a slice what its chip is, how collectives are done there, which groups fill
// which parts of it, and whether it is large, and nothing else. So a program that was compiled for
// one slice is known for another of the same chip if these questions have the same answers there.
class SliceCache {
 public:
  // Shares the kernels of `kin`, a cache of another slice of the same chip; null: has its own.
  explicit SliceCache(configs::Config slice, const SliceCache* kin = nullptr);
  SliceCache(const SliceCache&) = delete;
  SliceCache& operator=(const SliceCache&) = delete;

  const configs::Config& config() const { return config_; }
  const target::Target& target() const { return target_; }
  const kernels::KernelLibrary& kernels() const { return *kernels_; }
  // Returns what a cost model looks up for partitions on these devices. `overrides` must be the
  // same every time.
  cost::ChipCostModel::Found Costs(const std::vector<int64_t>& device_of_partition,
                                   const collectives::AlgorithmOverrides& overrides);
  // Returns the cost model of this slice for the program that `costs` prices on another: with its
  // devices and trip counts. `costs` must live as long; `overrides` as for Costs.
  cost::ChipCostModel CostsLike(cost::ChipCostModel& costs,
                                const collectives::AlgorithmOverrides& overrides);

  // Returns whether a program that runs on `here`, the only one that was compiled with this cache,
  // would be scheduled the same way on devices `there` of another slice of the same chip. `slice`
  // keeps the decisions that this takes.
  bool SchedulesAlike(const std::vector<int64_t>& here, SliceCache& slice,
                      const std::vector<int64_t>& there) const;

 private:
  const configs::Config config_;
  const target::Target target_;
  std::shared_ptr<kernels::KernelLibrary> kernels_;
  std::map<std::vector<int64_t>, std::shared_ptr<cost::CollectiveDecisions>> collectives_;
};

// The caches of all slices that were compiled for. Slices of one chip share kernels.
class SliceCaches {
 public:
  // Returns the cache of a slice for programs with these algorithms, made if need be; it lives
  // until Clear.
  SliceCache& Of(const configs::Config& slice, const collectives::AlgorithmOverrides& algorithms);
  // Returns all caches of the slice's chip, with whatever algorithms.
  std::vector<SliceCache*> OfChip(const configs::Config& slice);
  // Returns the distinct kernels that were searched for, of all chips.
  int64_t KernelSearches() const;
  void Clear() { chips_.clear(); }

 private:
  using Chip = std::map<std::string, std::unique_ptr<SliceCache>>;  // by slice and algorithms

  std::map<std::string, Chip> chips_;  // by all that a slice says of its chip
};

}  // namespace tpusim::compiler

#endif  // TPUSIM_WORKLOADS_COMPILER_SLICE_CACHE_H_
