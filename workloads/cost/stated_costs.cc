#include "workloads/cost/stated_costs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>
#include <string_view>

#include "configs/status_macros.h"
#include "workloads/hlo/analysis/execution.h"

namespace tpusim::cost {
namespace {

// Whether it takes time of its own on the main stream.
bool IsPriced(hlo::Execution execution) {
  return execution == hlo::Execution::kKernel || execution == hlo::Execution::kScalar ||
         execution == hlo::Execution::kCollective || execution == hlo::Execution::kTransfer;
}

// Returns the modelled bytes in the stated time. `modelled` is an error without a rule.
Work InStatedTime(const StatedCost& stated, const absl::StatusOr<Work>& modelled) {
  Work work = modelled.ok() ? *modelled : Work{};
  const double faster = Ratio(work.time, stated.time);
  for (double& share : work.share) share = std::min(1.0, share * faster);
  work.rate = work.rate * faster;
  work.latency = stated.latency;
  work.time = stated.time;
  return work;
}

}  // namespace

// Costs of candidates: stated, or else the model's.
class StatedCosts::Candidates : public CandidateCosts {
 public:
  Candidates(StatedCosts& stated, const KernelGraph& graph)
      : stated_(stated), graph_(graph), model_(stated.model_.CandidatesOf(graph)) {}

  bool HasRule(int instruction) const override { return model_->HasRule(instruction); }
  Price BoundOf(const Candidate& candidate) override {
    Price bound = model_->BoundOf(candidate);
    if (const StatedCost* stated = Find(candidate)) bound.time = stated->latency + stated->time;
    return bound;
  }

 private:
  const StatedCost* Find(const Candidate& candidate) {
    std::vector<std::string_view> names;
    for (const int member : candidate.members) names.push_back(graph_.At(member).name());
    return stated_.Find(fmt::format("{}", fmt::join(names, " + ")));
  }

  StatedCosts& stated_;
  const KernelGraph& graph_;
  const std::unique_ptr<CandidateCosts> model_;
};

std::unique_ptr<CandidateCosts> StatedCosts::CandidatesOf(const KernelGraph& graph) {
  return std::make_unique<Candidates>(*this, graph);
}

const StatedCost* StatedCosts::Find(const std::string& name) {
  const bool several = name.find(" + ") != std::string::npos;
  for (size_t n = 0; n < stated_.size(); ++n) {
    // "*" is every instruction, not everything that could be made of them.
    if (several != (stated_[n].name.find(" + ") != std::string::npos)) continue;
    if (fnmatch(stated_[n].name.c_str(), name.c_str(), 0) != 0) continue;
    used_[n] = true;
    return &stated_[n];
  }
  return nullptr;
}

std::vector<std::string> StatedCosts::Unused() const {
  std::vector<std::string> unused;
  for (size_t n = 0; n < stated_.size(); ++n) {
    if (!used_[n]) unused.push_back(stated_[n].name);
  }
  return unused;
}

absl::StatusOr<Work> StatedCosts::WorkOf(const hlo::Instruction& i) {
  ASSIGN_OR_RETURN(const hlo::Execution execution, hlo::ExecutionOf(i));
  const StatedCost* stated = IsPriced(execution) ? Find(i) : nullptr;
  return stated != nullptr ? InStatedTime(*stated, model_.WorkOf(i)) : model_.WorkOf(i);
}

absl::StatusOr<Work> StatedCosts::TransferOf(const hlo::Instruction& start) {
  const StatedCost* stated = Find(start);
  return stated != nullptr ? InStatedTime(*stated, model_.TransferOf(start))
                           : model_.TransferOf(start);
}

absl::StatusOr<kernels::KernelCost> StatedCosts::KernelOf(const hlo::Instruction& kernel) {
  const StatedCost* stated = Find(kernel);
  absl::StatusOr<kernels::KernelCost> cost = model_.KernelOf(kernel);
  if (stated == nullptr) return cost;
  kernels::KernelCost in_stated_time = cost.ok() ? *cost : kernels::KernelCost{};
  in_stated_time.launch = stated->latency;
  in_stated_time.time = stated->latency + stated->time;
  return in_stated_time;
}

}  // namespace tpusim::cost
