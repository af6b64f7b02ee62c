#include "workloads/search/forest.h"

#include <algorithm>
#include <functional>

#include "configs/status_macros.h"

namespace tpusim::search {

namespace {

bool SameChoices(const Space& a, const Space& b) {
  if (a.meshes() != b.meshes() || a.decisions() != b.decisions()) return false;
  for (size_t d = 0; d < a.decisions(); ++d) {
    if (a.NameOf(d) != b.NameOf(d)) return false;
  }
  return true;
}

}  // namespace

Forest::Forest(const std::vector<Space>& spaces, const std::vector<RateBound>& rates,
               const BranchAndBound::Options& options)
    : spaces_(spaces) {
  trees_.reserve(rates.size());
  for (size_t variant = 0; variant < rates.size(); ++variant) {
    BranchAndBound::Options own = options;
    own.variant = static_cast<int32_t>(variant);
    trees_.emplace_back(spaces[variant], rates[variant], own);
  }
}

std::vector<BranchAndBound*> Forest::Alike(int32_t variant) {
  std::vector<BranchAndBound*> alike;
  for (size_t other = 0; other < trees_.size(); ++other) {
    if (SameChoices(spaces_[static_cast<size_t>(variant)], spaces_[other])) {
      alike.push_back(&trees_[other]);
    }
  }
  return alike;
}

void Forest::Know(Picoseconds step) {
  for (BranchAndBound& tree : trees_) tree.Know(step);
}

void Forest::SuggestNear(const Candidate& candidate) {
  trees_[static_cast<size_t>(candidate.variant)].SuggestNear(candidate);
}

void Forest::Suggest(const Candidate& candidate) {
  for (BranchAndBound* tree : Alike(candidate.variant)) tree->Suggest(candidate);
}

std::optional<Candidate> Forest::Next() {
  std::vector<BranchAndBound*> order;
  for (size_t i = 0; i < trees_.size(); ++i) {
    order.push_back(&trees_[(turn_ + i) % trees_.size()]);
  }
  turn_ = (turn_ + 1) % trees_.size();
  std::ranges::stable_sort(order, {}, [](const BranchAndBound* tree) {
    return tree->suggests() ? Picoseconds(0) : tree->LowerBound();
  });
  for (BranchAndBound* tree : order) {
    if (std::optional<Candidate> candidate = tree->Next()) return candidate;
  }
  return std::nullopt;
}

bool Forest::Believes(const Candidate& candidate, const Verdict& verdict) const {
  return trees_[static_cast<size_t>(candidate.variant)].Believes(candidate, verdict);
}

absl::Status Forest::Tell(const Candidate& candidate, const Verdict& verdict) {
  const std::optional<Found> before = best();
  RETURN_IF_ERROR(trees_[static_cast<size_t>(candidate.variant)].Tell(candidate, verdict));
  const std::optional<Found> now = best();
  if (!now || (before && before->candidate == now->candidate)) return absl::OkStatus();
  Know(now->verdict.step);
  Suggest(now->candidate);
  SuggestNear(now->candidate);
  return absl::OkStatus();
}

std::optional<Found> Forest::best() const {
  std::optional<Found> best;
  for (const BranchAndBound& tree : trees_) {
    if (!tree.best()) continue;
    if (!best || tree.best()->verdict.step < best->verdict.step) best = tree.best();
  }
  return best;
}

Picoseconds Forest::LowerBound() const {
  Picoseconds least = trees_.front().LowerBound();
  for (const BranchAndBound& tree : trees_) least = std::min(least, tree.LowerBound());
  return least;
}

Tally Forest::tally() const {
  Tally sum;
  for (const BranchAndBound& tree : trees_) {
    const Tally one = tree.tally();
    for (double Tally::*part : {&Tally::all, &Tally::impossible, &Tally::memory, &Tally::rates,
                                &Tally::judged, &Tally::waiting}) {
      sum.*part += one.*part;
    }
    for (int64_t Tally::*part : {&Tally::candidates, &Tally::bounded, &Tally::equal,
                                 &Tally::too_large, &Tally::refused, &Tally::simulated}) {
      sum.*part += one.*part;
    }
  }
  return sum;
}

std::vector<Found> Forest::found() const {
  std::vector<Found> all;
  for (const BranchAndBound& tree : trees_) {
    all.insert(all.end(), tree.found().begin(), tree.found().end());
  }
  return all;
}

std::optional<Bytes> Forest::smallest_too_large() const {
  std::optional<Bytes> least;
  for (const BranchAndBound& tree : trees_) {
    const std::optional<Bytes> one = tree.smallest_too_large();
    if (one) least = std::min(least.value_or(*one), *one);
  }
  return least;
}

}  // namespace tpusim::search
