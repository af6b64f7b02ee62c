#include <algorithm>
#include <unordered_set>
#include <utility>

#include "workloads/passes/spaces/limits.h"
#include "workloads/passes/spaces/space_plan.h"

namespace tpusim::passes {
namespace {

// A replay is not more exact than that: a plan that is less than this part shorter is not taken for
// shorter, or rounding would decide.
constexpr double kNoticeable = 1e-3;  // number: rounding

bool IsShorter(double seconds, double than) { return seconds < than * (1 - kNoticeable); }

// Values that get no copies; looked up, never iterated.
using Uncopied = std::unordered_set<const SpaceValue*>;

// A value with copies, and by how much these are waited for longer than they save.
struct CopyLoss {
  const SpaceValue* value = nullptr;
  double seconds = 0;
};

struct Trial {
  Uncopied uncopied;
  SpacePlans plans;
  double seconds = 0;
  std::vector<CopyLoss> losses;  // the largest first
};

Picoseconds SavedBy(const SpacePlan& plan) {
  Picoseconds saved = plan.evicted ? plan.value->saved_by_making : Picoseconds(0);
  for (const SpaceAllocation& allocation : plan.allocations) {
    if (!allocation.prefetched && !plan.evicted) continue;
    for (const SpaceUse* use : allocation.uses) saved += use->saved;
  }
  return saved;
}

bool HasCopies(const SpacePlan& plan) {
  return plan.evicted ||
         std::any_of(plan.allocations.begin(), plan.allocations.end(),
                     [](const SpaceAllocation& allocation) { return allocation.prefetched; });
}

class SpaceSearch {
 public:
  SpaceSearch(const std::vector<std::unique_ptr<SpaceTimeline>>& timelines,
              const std::vector<const SpaceValue*>& values, const SpacePlanner& planner,
              const target::Target& target)
      : timelines_(timelines), values_(values), planner_(planner) {
    for (const auto& timeline : timelines_) replays_.emplace_back(*timeline, planner, target);
  }

  SpacePlans Run() {
    Trial best = Try(/*copies=*/false, {});
    Trial trial = Try(/*copies=*/true, {});
    for (int round = 0;; ++round) {
      Uncopied uncopied = trial.uncopied;
      for (const CopyLoss& loss : trial.losses) {
        if (loss.seconds >= 0) uncopied.insert(loss.value);
      }
      if (uncopied.size() == trial.uncopied.size()) break;
      if (round == limits::kSpaceRounds.most()) {
        limits::kSpaceRounds.Reached();
        break;
      }
      if (!Improve(std::move(uncopied), trial)) break;
    }
    if (IsShorter(trial.seconds, best.seconds)) best = std::move(trial);
    const std::vector<CopyLoss> losses = best.losses;
    const int64_t singles = limits::kSpaceCopiesLeftOut.most();
    if (std::ssize(losses) > singles)
      limits::kSpaceCopiesLeftOut.Reached(std::ssize(losses) - singles);
    for (size_t n = 0; n < std::min(static_cast<size_t>(singles), losses.size()); ++n) {
      Uncopied uncopied = best.uncopied;
      uncopied.insert(losses[n].value);
      Improve(std::move(uncopied), best);
    }
    return std::move(best.plans);
  }

 private:
  Trial Try(bool copies, Uncopied uncopied) {
    RestartAll(timelines_);
    Trial trial;
    for (const SpaceValue* value : values_) {
      SpacePlan plan = planner_.Plan(*value, copies && !uncopied.contains(value));
      if (!plan.allocations.empty()) trial.plans[value->timeline].push_back(std::move(plan));
    }
    trial.uncopied = std::move(uncopied);
    for (size_t t = 0; t < timelines_.size(); ++t) {
      const auto& timeline = timelines_[t];
      const std::vector<SpacePlan>& plans = trial.plans[timeline.get()];
      const SpaceReplay replay = replays_[t].With(plans);
      trial.seconds += timeline->executions() * ToSeconds(replay.length);
      for (size_t p = 0; p < plans.size(); ++p) {
        if (!HasCopies(plans[p])) continue;
        const double seconds = ToSeconds(replay.waited[p]) - ToSeconds(SavedBy(plans[p]));
        trial.losses.push_back({plans[p].value, timeline->executions() * seconds});
      }
    }
    std::stable_sort(trial.losses.begin(), trial.losses.end(),
                     [](const CopyLoss& a, const CopyLoss& b) { return a.seconds > b.seconds; });
    return trial;
  }

  // Takes the trial without copies of `uncopied` if that is shorter. Was it?
  bool Improve(Uncopied uncopied, Trial& trial) {
    Trial without = Try(/*copies=*/true, std::move(uncopied));
    if (!IsShorter(without.seconds, trial.seconds)) return false;
    trial = std::move(without);
    return true;
  }

  const std::vector<std::unique_ptr<SpaceTimeline>>& timelines_;
  const std::vector<const SpaceValue*>& values_;
  const SpacePlanner& planner_;
  std::vector<SpaceReplays> replays_;  // by timeline
};

}  // namespace

SpacePlans SearchSpacePlans(const std::vector<std::unique_ptr<SpaceTimeline>>& timelines,
                            const std::vector<const SpaceValue*>& values,
                            const SpacePlanner& planner, const target::Target& target) {
  return SpaceSearch(timelines, values, planner, target).Run();
}

bool WidenWindows(const std::vector<std::unique_ptr<SpaceTimeline>>& timelines,
                  const SpacePlans& plans, const SpacePlanner& planner,
                  const target::Target& target) {
  if (!planner.HasWindows()) return false;
  RestartAll(timelines);
  for (const auto& timeline : timelines) {
    const auto of = plans.find(timeline.get());
    if (of == plans.end()) continue;
    for (const SpacePlan& plan : of->second) {
      for (const SpaceAllocation& a : plan.allocations) {
        timeline->Occupy(a.from, a.last, plan.value->bytes);
      }
    }
  }
  bool widened = false;
  for (const auto& timeline : timelines) {
    const auto of = plans.find(timeline.get());
    if (of == plans.end()) continue;
    const SpaceReplay replay = SpaceReplays(*timeline, planner, target).With(of->second);
    for (const auto& [at, windows] : replay.windows) {
      if (timeline->WidenWindows(at, windows, planner.capacity())) widened = true;
    }
  }
  return widened;
}

}  // namespace tpusim::passes
