#include "workloads/search/branch_and_bound.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "configs/status_macros.h"
#include "workloads/search/limits.h"
#include "workloads/search/statements.h"

namespace tpusim::search {
namespace {

// Every way: by propagation, and every combination of constraints.
std::vector<std::vector<ConflictResolution>> Resolutions(const Space& space,
                                                         const std::vector<AxisSet>& axes) {
  std::vector<std::vector<ConflictResolution>> all = {{}};
  std::vector<size_t> active = space.Conflicts(axes);
  if (const int64_t beyond = std::ssize(active) - limits::kConflicts.most(); beyond > 0) {
    limits::kConflicts.Reached(beyond);
    active.resize(active.size() - static_cast<size_t>(beyond));
  }
  if (active.empty()) return all;
  for (uint32_t bits = 0; bits < 1U << active.size(); ++bits) {
    std::vector<ConflictResolution> resolution(space.conflicts().size(),
                                               ConflictResolution::kByPropagation);
    for (size_t i = 0; i < active.size(); ++i) {
      resolution[active[i]] =
          (bits >> i & 1) != 0 ? ConflictResolution::kSecond : ConflictResolution::kFirst;
    }
    all.push_back(std::move(resolution));
  }
  return all;
}

}  // namespace

// Puts the deeper of equal bounds first, which ends sooner, and then the one that takes less
// memory.
bool BranchAndBound::Later::operator()(const Node& a, const Node& b) const {
  if (a.bound != b.bound) return a.bound > b.bound;
  if (a.axes.size() != b.axes.size()) return a.axes.size() < b.axes.size();
  return a.memory > b.memory;
}

BranchAndBound::BranchAndBound(const Space& space, const RateBound& rates, const Options& options)
    : space_(space), rates_(rates), options_(options) {
  tally_.all = space.Count();
  for (size_t mesh = 0; mesh < space.meshes().size(); ++mesh) Admit({{}, {}, mesh, {}});
}

Picoseconds BranchAndBound::Cutoff() const {
  return options_.all ? Picoseconds(INT64_MAX) : shortest_;
}

bool BranchAndBound::TooLong(Picoseconds bound) const {
  if (options_.all || shortest_ == Picoseconds(INT64_MAX)) return false;
  return static_cast<double>(bound.value()) >=
         static_cast<double>(shortest_.value()) * (1 - options_.gap);
}

void BranchAndBound::Know(Picoseconds step) { shortest_ = std::min(shortest_, step); }

void BranchAndBound::LeaveOut(Picoseconds bound) {
  least_left_out_ = std::min(least_left_out_.value_or(bound), bound);
}

double BranchAndBound::Below(size_t mesh, const std::vector<AxisSet>& decided) const {
  double below = space_.Below(mesh, decided.size());
  const auto number = static_cast<int32_t>(mesh);
  for (auto at = handed_.lower_bound({number, decided}); at != handed_.end(); ++at) {
    const bool under =
        at->first == number && std::equal(decided.begin(), decided.end(), at->second.begin());
    if (!under) break;
    --below;
  }
  return below;
}

void BranchAndBound::Admit(Node node) {
  const double below = Below(node.mesh, node.axes);
  if (!node.axes.empty() && !space_.Possible(node.axes)) {
    tally_.impossible += below;
    return;
  }
  node.memory = rates_.Memory(node.mesh, node.axes);
  if (node.memory > options_.usable) {
    tally_.memory += below;
    smallest_too_large_ = std::min(smallest_too_large_.value_or(node.memory), node.memory);
    return;
  }
  node.bound = rates_.Time(node.mesh, node.axes);
  if (TooLong(node.bound)) {
    tally_.rates += below;
    LeaveOut(node.bound);
    return;
  }
  open_.push(std::move(node));
}

void BranchAndBound::Branch(const Node& node) {
  for (const AxisSet axes : space_.Choices(node.mesh, node.axes.size())) {
    Node next{{}, {}, node.mesh, node.axes};
    next.axes.push_back(axes);
    Admit(std::move(next));
  }
}

void BranchAndBound::Hand(size_t mesh, const std::vector<AxisSet>& axes,
                          std::deque<Candidate>& queue) {
  if (!handed_.emplace(static_cast<int32_t>(mesh), axes).second) return;
  ++tally_.judged;
  for (std::vector<ConflictResolution>& resolution : Resolutions(space_, axes)) {
    queue.push_back({static_cast<int32_t>(mesh), axes, std::move(resolution), options_.variant});
  }
}

bool BranchAndBound::Promises(size_t mesh, const std::vector<AxisSet>& axes) const {
  for (size_t d = 0; d < axes.size(); ++d) {
    const std::vector<AxisSet>& choices = space_.Choices(mesh, d);
    if (std::ranges::find(choices, axes[d]) == choices.end()) return false;
    if (!space_.Possible({axes.begin(), axes.begin() + d + 1})) return false;
  }
  return rates_.Memory(mesh, axes) <= options_.usable && rates_.Time(mesh, axes) < Cutoff();
}

void BranchAndBound::Suggest(const Candidate& candidate) {
  const auto mesh = static_cast<size_t>(candidate.mesh);
  if (Promises(mesh, candidate.axes)) Hand(mesh, candidate.axes, first_);
}

void BranchAndBound::SuggestNear(const Candidate& candidate) {
  for (size_t mesh = 0; mesh < space_.meshes().size(); ++mesh) {
    Candidate other = candidate;
    other.mesh = static_cast<int32_t>(mesh);
    Suggest(other);
  }
  for (size_t d = 0; d < candidate.axes.size(); ++d) {
    for (const AxisSet axes : space_.Choices(static_cast<size_t>(candidate.mesh), d)) {
      Candidate other = candidate;
      other.axes[d] = axes;
      Suggest(other);
    }
  }
  center_ = Key{candidate.mesh, candidate.axes};
  pairs_.clear();
}

void BranchAndBound::FindPairs() {
  const auto [center_mesh, center] = *std::exchange(center_, std::nullopt);
  std::vector<std::pair<Picoseconds, Key>> found;
  const auto consider = [&](size_t mesh, const std::vector<AxisSet>& axes) {
    Key key{static_cast<int32_t>(mesh), axes};
    if (handed_.contains(key) || !Promises(mesh, axes)) return;
    found.emplace_back(rates_.Time(mesh, axes), std::move(key));
  };
  for (size_t mesh = 0; mesh < space_.meshes().size(); ++mesh) {
    for (size_t d = 0; d < center.size(); ++d) {
      std::vector<AxisSet> axes = center;
      for (const AxisSet one : space_.Choices(mesh, d)) {
        axes[d] = one;
        if (one == center[d]) continue;
        consider(mesh, axes);
        if (mesh != static_cast<size_t>(center_mesh)) continue;
        for (size_t e = d + 1; e < center.size(); ++e) {
          for (const AxisSet other : space_.Choices(mesh, e)) {
            if (other == center[e]) continue;
            axes[e] = other;
            consider(mesh, axes);
          }
          axes[e] = center[e];
        }
      }
    }
  }
  std::ranges::stable_sort(found, {}, &std::pair<Picoseconds, Key>::first);
  for (auto& [bound, key] : found) pairs_.push_back(std::move(key));
}

std::optional<Candidate> BranchAndBound::Next() {
  const auto take = [&](std::deque<Candidate>& queue) {
    Candidate candidate = std::move(queue.front());
    queue.pop_front();
    awaited_.emplace(rates_.Time(static_cast<size_t>(candidate.mesh), candidate.axes), candidate);
    return candidate;
  };
  if (first_.empty() && center_) FindPairs();
  while (first_.empty() && !pairs_.empty()) {
    const auto [mesh, axes] = std::move(pairs_.front());
    pairs_.pop_front();
    Suggest({mesh, axes, {}});
  }
  if (!first_.empty()) return take(first_);
  while (ready_.empty() && !open_.empty()) {
    const Node node = open_.top();
    open_.pop();
    if (TooLong(node.bound)) {
      tally_.rates += Below(node.mesh, node.axes);
      LeaveOut(node.bound);
    } else if (node.axes.size() < space_.decisions()) {
      Branch(node);
    } else {
      Hand(node.mesh, node.axes, ready_);
    }
  }
  if (ready_.empty()) return std::nullopt;
  return take(ready_);
}

absl::Status BranchAndBound::CheckBounds(const Candidate& candidate, const Verdict& verdict) const {
  if (verdict.kind != Verdict::Kind::kSimulated) return absl::OkStatus();
  const auto mesh = static_cast<size_t>(candidate.mesh);
  const auto broken = [&](std::string_view what, int64_t bound, int64_t simulated) {
    return absl::InternalError(fmt::format("a bound of {} is {}, but {} was simulated: {}", what,
                                           bound, simulated, ToString(space_.meshes()[mesh])));
  };
  if (verdict.bound > verdict.step) {
    return broken("the compiled program", verdict.bound.value(), verdict.step.value());
  }
  std::vector<AxisSet> decided;
  for (size_t d = 0; d <= candidate.axes.size(); ++d) {
    const Picoseconds time = rates_.Time(mesh, decided);
    if (time > verdict.step) return broken("rates", time.value(), verdict.step.value());
    const Bytes memory = rates_.Memory(mesh, decided);
    if (memory > verdict.peak) return broken("memory", memory.value(), verdict.peak.value());
    if (d < candidate.axes.size()) decided.push_back(candidate.axes[d]);
  }
  return absl::OkStatus();
}

absl::Status BranchAndBound::Tell(const Candidate& candidate, const Verdict& verdict) {
  std::erase_if(awaited_, [&](const auto& entry) { return entry.second == candidate; });
  ++tally_.candidates;
  const bool simulated = verdict.kind == Verdict::Kind::kSimulated;
  if (verdict.equal ||
      (simulated && !verdict.program.empty() && !programs_.insert(verdict.program).second)) {
    ++tally_.equal;
    return absl::OkStatus();
  }
  switch (verdict.kind) {
    case Verdict::Kind::kBounded:
      ++tally_.bounded;
      LeaveOut(verdict.bound);
      return absl::OkStatus();
    case Verdict::Kind::kTooLarge:
      ++tally_.too_large;
      smallest_too_large_ = std::min(smallest_too_large_.value_or(verdict.peak), verdict.peak);
      return absl::OkStatus();
    case Verdict::Kind::kImpossible:
      ++tally_.refused;
      return absl::OkStatus();
    case Verdict::Kind::kFits:
      return absl::InternalError("a candidate of a search was neither simulated nor bounded");
    case Verdict::Kind::kSimulated:
      break;
  }
  RETURN_IF_ERROR(CheckBounds(candidate, verdict));
  ++tally_.simulated;
  found_.push_back({candidate, verdict});
  if (best_ && best_->verdict.step <= verdict.step) return absl::OkStatus();
  best_ = found_.back();
  Know(verdict.step);
  return absl::OkStatus();
}

Picoseconds BranchAndBound::LowerBound() const {
  Picoseconds least = shortest_;
  if (least_left_out_) least = std::min(least, *least_left_out_);
  if (!open_.empty()) least = std::min(least, open_.top().bound);
  if (!awaited_.empty()) least = std::min(least, awaited_.begin()->first);
  for (const std::deque<Candidate>* queue : {&first_, &ready_}) {
    for (const Candidate& candidate : *queue) {
      least = std::min(least, rates_.Time(static_cast<size_t>(candidate.mesh), candidate.axes));
    }
  }
  return least;
}

Tally BranchAndBound::tally() const {
  Tally tally = tally_;
  tally.waiting =
      std::max(0.0, tally.all - tally.impossible - tally.memory - tally.rates - tally.judged);
  return tally;
}

}  // namespace tpusim::search
