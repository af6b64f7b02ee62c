// The costs of a chip: its kernels, its collectives, its copies.
#ifndef TPUSIM_WORKLOADS_COST_CHIP_COST_MODEL_H_
#define TPUSIM_WORKLOADS_COST_CHIP_COST_MODEL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "workloads/collectives/collective.h"
#include "workloads/cost/collective_decisions.h"
#include "workloads/cost/cost_model.h"
#include "workloads/spmd/reshard_plan.h"
#include "workloads/target/target.h"

namespace tpusim::cost {

Work WorkOfKernel(const configs::ChipParams& chip, const kernels::KernelCost& kernel);
spmd::ReshardLatency LatencyOfReshards(const configs::ChipParams& chip);

class ChipCostModel : public CostModel {
 public:
  using Trips = std::function<absl::StatusOr<int64_t>(const hlo::Instruction& loop)>;

  // Answers for a target that may be asked for again.
  struct Found {
    std::shared_ptr<kernels::KernelLibrary> kernels;
    std::shared_ptr<CollectiveDecisions> collectives;
  };

  // The target must live as long.
  ChipCostModel(const target::Target& target, std::vector<int64_t> device_of_partition,
                collectives::AlgorithmOverrides overrides, Trips trips)
      : ChipCostModel(target,
                      {std::make_shared<kernels::KernelLibrary>(target),
                       std::make_shared<CollectiveDecisions>(
                           target.config(), std::move(device_of_partition), std::move(overrides))},
                      std::move(trips)) {}
  ChipCostModel(const target::Target& target, Found found, Trips trips)
      : target_(target),
        kernels_(std::move(found.kernels)),
        arrays_(target),
        collectives_(std::move(found.collectives)),
        trips_(std::move(trips)) {}

  absl::StatusOr<Work> WorkOf(const hlo::Instruction& instruction) override;
  absl::StatusOr<Work> TransferOf(const hlo::Instruction& start) override;
  absl::StatusOr<int64_t> TripsOf(const hlo::Instruction& loop) override { return trips_(loop); }
  absl::StatusOr<kernels::KernelCost> KernelOf(const hlo::Instruction& kernel) override {
    return kernels_->CostOf(kernel);
  }
  absl::StatusOr<kernels::PlaceableKernel*> PlaceableOf(const hlo::Instruction& kernel,
                                                        int64_t space) override {
    return kernels_->PlaceableOf(kernel, space);
  }
  std::unique_ptr<CandidateCosts> CandidatesOf(const KernelGraph& graph) override {
    return CostsOfCandidates(graph, target_);
  }
  const ArrayCosts& arrays() override { return arrays_; }
  absl::StatusOr<Price> PriceOfCopy(const hlo::Shape& from, const hlo::Shape& to) override {
    return cost::PriceOfCopy(from, to, *kernels_);
  }
  absl::StatusOr<CollectiveGroups> GroupsOf(const hlo::Instruction& collective) override;

  // Returns the library that the answers come from, for the lowering.
  kernels::KernelLibrary& kernels() { return *kernels_; }
  CollectiveDecisions& collectives() { return *collectives_; }

 private:
  absl::StatusOr<Work> WorkOfCollective(const hlo::Instruction& collective);
  absl::StatusOr<Work> WorkOfCopy(const hlo::Instruction& copy);

  const target::Target& target_;
  const std::shared_ptr<kernels::KernelLibrary> kernels_;
  const ArrayCosts arrays_;
  const std::shared_ptr<CollectiveDecisions> collectives_;
  const Trips trips_;
};

}  // namespace tpusim::cost

#endif  // TPUSIM_WORKLOADS_COST_CHIP_COST_MODEL_H_
