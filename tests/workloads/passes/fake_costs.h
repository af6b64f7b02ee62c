// Costs that tests of passes state.
#ifndef TPUSIM_TESTS_WORKLOADS_PASSES_FAKE_COSTS_H_
#define TPUSIM_TESTS_WORKLOADS_PASSES_FAKE_COSTS_H_

#include <deque>
#include <functional>
#include <utility>
#include <vector>

#include "configs/config.h"
#include "configs/status_macros.h"
#include "workloads/cost/cost_model.h"
#include "workloads/hlo/ir/attributes.h"

namespace tpusim::passes {

// Kernels and transfers that take the stated times and use nothing that is shared.
struct FakeCosts : cost::CostModel {
  using Time = std::function<int64_t(const hlo::Instruction&)>;  // ps
  Time main, transfer;
  int64_t trips = 1;

  static cost::Work Lasting(int64_t time) {
    cost::Work work;
    work.time = Picoseconds(time);
    return work;
  }
  absl::StatusOr<cost::Work> WorkOf(const hlo::Instruction& i) override {
    return Lasting(main ? main(i) : 0);
  }
  absl::StatusOr<cost::Work> TransferOf(const hlo::Instruction& start) override {
    return Lasting(transfer ? transfer(start) : 0);
  }
  absl::StatusOr<int64_t> TripsOf(const hlo::Instruction&) override { return trips; }
  // Groups as they are stated, by partitions up to 64.
  std::vector<int64_t> filled_extents;
  absl::StatusOr<cost::CollectiveGroups> GroupsOf(const hlo::Instruction& i) override {
    ASSIGN_OR_RETURN(auto groups, hlo::ReplicaGroups(i, partitions));
    return cost::CollectiveGroups{std::move(groups), filled_extents};
  }
  absl::StatusOr<kernels::KernelCost> KernelOf(const hlo::Instruction& i) override {
    kernels::KernelCost cost;
    cost.time = Lasting(main ? main(i) : 0).time;
    return cost;
  }
  absl::StatusOr<kernels::PlaceableKernel*> PlaceableOf(const hlo::Instruction& i,
                                                        int64_t) override {
    return &kernels.emplace_back(chip, isa::Kernel{}, std::vector<int64_t>{}, i.operands().size(),
                                 hlo::Leaves(i.shape()).size(), isa::MemorySpace::kVmem, nullptr);
  }
  int64_t partitions = 4;
  const configs::ChipParams chip = configs::LoadConfig("v5e-1x1", {}).value().chip;
  std::deque<kernels::PlaceableKernel> kernels;  // that move nothing
};

}  // namespace tpusim::passes

#endif  // TPUSIM_TESTS_WORKLOADS_PASSES_FAKE_COSTS_H_
