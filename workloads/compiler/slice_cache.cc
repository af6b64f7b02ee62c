#include "workloads/compiler/slice_cache.h"

#include <utility>

#include "configs/config_digest.h"
#include "configs/digest.h"
#include "workloads/target/async_form.h"

namespace tpusim::compiler {
namespace {

// Returns what is equal for slices of one chip with the same settings.
std::string ChipKey(configs::Config slice) {
  slice.name.clear();
  slice.topology = {};
  configs::Digest digest;
  AddTo(digest, slice);
  return digest.Text();
}

std::string SliceKey(const configs::Config& slice,
                     const collectives::AlgorithmOverrides& algorithms) {
  configs::Digest digest;
  AddTo(digest, slice);
  for (const collectives::AlgorithmOverride& a : algorithms) digest.Add(a.kind, a.name);
  return digest.Text();
}

}  // namespace

SliceCache::SliceCache(configs::Config slice, const SliceCache* kin)
    : config_(std::move(slice)),
      target_(config_),
      kernels_(kin != nullptr ? kin->kernels_ : std::make_shared<kernels::KernelLibrary>(target_)) {
}

cost::ChipCostModel::Found SliceCache::Costs(const std::vector<int64_t>& device_of_partition,
                                             const collectives::AlgorithmOverrides& overrides) {
  std::shared_ptr<cost::CollectiveDecisions>& decisions = collectives_[device_of_partition];
  if (decisions == nullptr) {
    decisions =
        std::make_shared<cost::CollectiveDecisions>(config_, device_of_partition, overrides);
  }
  return {kernels_, decisions};
}

cost::ChipCostModel SliceCache::CostsLike(cost::ChipCostModel& costs,
                                          const collectives::AlgorithmOverrides& overrides) {
  return {target_, Costs(costs.collectives().device_of_partition(), overrides),
          [&costs](const hlo::Instruction& loop) { return costs.TripsOf(loop); }};
}

bool SliceCache::SchedulesAlike(const std::vector<int64_t>& here, SliceCache& slice,
                                const std::vector<int64_t>& there) const {
  if (target::HasAsyncPermutes(target_) != target::HasAsyncPermutes(slice.target_)) return false;
  const auto found = collectives_.find(here);
  return found != collectives_.end() &&
         found->second->SameIn(*slice.Costs(there, found->second->overrides()).collectives);
}

SliceCache& SliceCaches::Of(const configs::Config& slice,
                            const collectives::AlgorithmOverrides& algorithms) {
  Chip& chip = chips_[ChipKey(slice)];
  const SliceCache* const kin = chip.empty() ? nullptr : chip.begin()->second.get();
  std::unique_ptr<SliceCache>& cache = chip[SliceKey(slice, algorithms)];
  if (cache == nullptr) cache = std::make_unique<SliceCache>(slice, kin);
  return *cache;
}

std::vector<SliceCache*> SliceCaches::OfChip(const configs::Config& slice) {
  std::vector<SliceCache*> caches;
  for (const auto& [key, cache] : chips_[ChipKey(slice)]) caches.push_back(cache.get());
  return caches;
}

int64_t SliceCaches::KernelSearches() const {
  int64_t searches = 0;
  for (const auto& [key, chip] : chips_) {
    if (!chip.empty()) searches += chip.begin()->second->kernels().searches();
  }
  return searches;
}

}  // namespace tpusim::compiler
