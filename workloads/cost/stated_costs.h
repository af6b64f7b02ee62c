// Costs that the user states, in front of those of the model: "what if this took 10 us?"
//
// A statement names kernels, collectives and transfers by their instructions, and a kernel that
// fusion could make by its members, operands first: "tanh + add". Its time is what
// one of them takes alone, wherever its arrays are, behind a latency that uses nothing. What it
// moves is what the model says, now in that time: two transfers over one link still share it.
#ifndef TPUSIM_WORKLOADS_COST_STATED_COSTS_H_
#define TPUSIM_WORKLOADS_COST_STATED_COSTS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "configs/units.h"
#include "workloads/cost/cost_model.h"

namespace tpusim::cost {

struct StatedCost {
  std::string name;  // of an instruction, or of several with " + " between; may be a glob
  Picoseconds time{0};
  Picoseconds latency{0};  // before that
};

class StatedCosts : public CostModel {
 public:
  // The first statement that matches a name counts. The model must live as long; it is asked
  // for everything else.
  StatedCosts(CostModel& model, std::vector<StatedCost> stated)
      : model_(model), stated_(std::move(stated)), used_(stated_.size()) {}

  // Names of the statements that priced nothing, as they were stated.
  std::vector<std::string> Unused() const;

  absl::StatusOr<Work> WorkOf(const hlo::Instruction& instruction) override;
  absl::StatusOr<Work> TransferOf(const hlo::Instruction& start) override;
  absl::StatusOr<kernels::KernelCost> KernelOf(const hlo::Instruction& kernel) override;

  absl::StatusOr<int64_t> TripsOf(const hlo::Instruction& loop) override {
    return model_.TripsOf(loop);
  }
  // Asks the model: it knows what an array would save elsewhere.
  absl::StatusOr<kernels::PlaceableKernel*> PlaceableOf(const hlo::Instruction& kernel,
                                                        int64_t space) override {
    return model_.PlaceableOf(kernel, space);
  }
  std::unique_ptr<CandidateCosts> CandidatesOf(const KernelGraph& graph) override;
  const ArrayCosts& arrays() override { return model_.arrays(); }
  absl::StatusOr<Price> PriceOfCopy(const hlo::Shape& from, const hlo::Shape& to) override {
    return model_.PriceOfCopy(from, to);
  }
  absl::StatusOr<CollectiveGroups> GroupsOf(const hlo::Instruction& collective) override {
    return model_.GroupsOf(collective);
  }

 private:
  class Candidates;

  // Null: nothing is stated.
  const StatedCost* Find(const std::string& name);
  const StatedCost* Find(const hlo::Instruction& instruction) { return Find(instruction.name()); }

  CostModel& model_;
  const std::vector<StatedCost> stated_;
  std::vector<bool> used_;
};

}  // namespace tpusim::cost

#endif  // TPUSIM_WORKLOADS_COST_STATED_COSTS_H_
