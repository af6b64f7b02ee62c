// Costs that tests of passes state.
#ifndef TPUSIM_TESTS_WORKLOADS_PASSES_FAKE_COSTS_H_
#define TPUSIM_TESTS_WORKLOADS_PASSES_FAKE_COSTS_H_

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

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
  // The cost of a kernel by which of its arrays are elsewhere; nothing if not stated.
  std::function<kernels::KernelCost(const hlo::Instruction&, const std::vector<bool>& there)>
      placed;
  absl::StatusOr<kernels::PlaceableKernel*> PlaceableOf(const hlo::Instruction& i,
                                                        int64_t) override {
    const auto cost = [this, &i](const std::vector<bool>& there) {
      return placed ? placed(i, there) : kernels::KernelCost{};
    };
    return &kernels.emplace_back(i.operands().size(), hlo::Leaves(i.shape()).size(), cost, cost);
  }
  // The time of a candidate, by the names of its members, "tanh + add". If not stated, as on
  // `machine`.
  std::function<int64_t(const std::string& members)> candidate;  // ps
  const target::Target* machine = nullptr;
  int64_t members_priced = 0;  // of all candidates whose times are stated
  std::unique_ptr<cost::CandidateCosts> CandidatesOf(const cost::KernelGraph& graph) override {
    if (candidate) return std::make_unique<StatedCandidates>(graph, *this);
    TPUSIM_CHECK(machine != nullptr, "the costs are not stated, and there is no machine");
    return cost::CostsOfCandidates(graph, *machine);
  }
  const cost::ArrayCosts& arrays() override {
    TPUSIM_CHECK(machine != nullptr, "the costs of arrays are those of a machine");
    if (array_costs == nullptr) array_costs = std::make_shared<cost::ArrayCosts>(*machine);
    return *array_costs;
  }
  // The time of copies between layouts; if not stated, as on `machine`.
  std::function<int64_t(const hlo::Shape& from, const hlo::Shape& to)> copy;  // ps
  absl::StatusOr<cost::Price> PriceOfCopy(const hlo::Shape& from, const hlo::Shape& to) override {
    if (copy) return cost::Price{Picoseconds(copy(from, to)), Bytes(0)};
    return cost::PriceOfCopy(from, to, Library());
  }
  int64_t partitions = 4;
  std::deque<kernels::PlaceableKernel> kernels;
  std::shared_ptr<kernels::KernelLibrary> library;
  std::shared_ptr<cost::ArrayCosts> array_costs;

 private:
  kernels::KernelLibrary& Library() {
    TPUSIM_CHECK(machine != nullptr, "the costs are not stated, and there is no machine");
    if (library == nullptr) library = std::make_shared<kernels::KernelLibrary>(*machine);
    return *library;
  }

  class StatedCandidates : public cost::CandidateCosts {
   public:
    StatedCandidates(const cost::KernelGraph& graph, FakeCosts& costs)
        : graph_(graph), costs_(costs) {}
    bool HasRule(int) const override { return true; }
    cost::Price BoundOf(const cost::Candidate& candidate) override {
      costs_.members_priced += static_cast<int64_t>(candidate.members.size());
      std::string names;
      for (const int m : candidate.members) {
        names += (names.empty() ? "" : " + ") + graph_.At(m).name();
      }
      return {Picoseconds(costs_.candidate(names)), Bytes(0)};
    }

   private:
    const cost::KernelGraph& graph_;
    FakeCosts& costs_;
  };
};

}  // namespace tpusim::passes

#endif  // TPUSIM_TESTS_WORKLOADS_PASSES_FAKE_COSTS_H_
