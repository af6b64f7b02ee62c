#include "workloads/search/branch_and_bound.h"

#include <cmath>
#include <functional>
#include <map>

#include "configs/limit.h"
#include "search_testing.h"
#include "workloads/search/rate_bound.h"

namespace tpusim::search {
namespace {

using Judged = std::function<Verdict(const Candidate&)>;

// A judge without a simulator: what rates say, and something for every candidate that they do not.
Verdict Invented(const RateBound& rates, const Candidate& candidate) {
  Verdict verdict;
  verdict.kind = Verdict::Kind::kSimulated;
  const auto mesh = static_cast<size_t>(candidate.mesh);
  int64_t more = 7919 * (candidate.mesh + 1);
  for (const AxisSet axes : candidate.axes) more = (more * 31 + axes * 17) % 100'000;
  for (const ConflictResolution resolution : candidate.conflicts) more += 1000 * static_cast<int64_t>(resolution);
  verdict.step = rates.Time(mesh, candidate.axes) + Picoseconds(more);
  verdict.bound = rates.Time(mesh, candidate.axes);
  verdict.peak = rates.Memory(mesh, candidate.axes);
  return verdict;
}

struct Searched {
  Found best;
  Tally tally;
  Picoseconds lower_bound{0};
  size_t judged = 0;
};

Searched SearchAll(const Space& space, const RateBound& rates, BranchAndBound::Options options) {
  BranchAndBound search(space, rates, options);
  Searched searched;
  while (const std::optional<Candidate> candidate = search.Next()) {
    ++searched.judged;
    Verdict verdict = Invented(rates, *candidate);
    if (verdict.bound >= search.Cutoff()) verdict.kind = Verdict::Kind::kBounded;
    EXPECT_TRUE(search.Tell(*candidate, verdict).ok());
  }
  searched.best = search.best().value();
  searched.tally = search.tally();
  searched.lower_bound = search.LowerBound();
  return searched;
}

BranchAndBound::Options Roomy() {
  BranchAndBound::Options options;
  options.usable = Bytes(int64_t{1} << 40);
  return options;
}

TEST(BranchAndBound, FindsWhatAnExhaustiveSearchFinds) {
  const Program program = TwoProducts();
  const Space space = Space::Of(program.variants[0].decisions, OverTwoAxes()).value();
  const RateBound rates(program, space);
  BranchAndBound::Options all = Roomy();
  all.all = true;
  const Searched exhaustive = SearchAll(space, rates, all);
  const Searched bounded = SearchAll(space, rates, Roomy());
  EXPECT_EQ(bounded.best.verdict.step, exhaustive.best.verdict.step);
  EXPECT_EQ(bounded.best.candidate, exhaustive.best.candidate);
  EXPECT_LT(bounded.judged, exhaustive.judged);
  EXPECT_EQ(bounded.lower_bound, bounded.best.verdict.step);
  // Every choice is one of the kinds.
  for (const Tally& t : {exhaustive.tally, bounded.tally}) {
    EXPECT_EQ(t.all, 136);
    EXPECT_EQ(t.all, t.impossible + t.memory + t.rates + t.judged);
    EXPECT_EQ(t.waiting, 0);
  }
  EXPECT_EQ(exhaustive.tally.rates, 0);
}

// The only conflict, of b and f, is left to propagation where none may be resolved.
TEST(BranchAndBound, ConflictsBeyondTheLimitAreCounted) {
  const Program program = TwoProducts();
  const Space space = Space::Of(program.variants[0].decisions, OverTwoAxes()).value();
  const RateBound rates(program, space);
  BranchAndBound::Options all = Roomy();
  all.all = true;
  const size_t resolved = SearchAll(space, rates, all).judged;
  const LimitScope scope({{"shard.conflicts", 0}});
  const size_t left = SearchAll(space, rates, all).judged;
  EXPECT_LT(left, resolved);
  std::vector<Record> reached;
  scope.AddTo(Records(nullptr, &reached));
  ASSERT_EQ(reached.size(), 1);
  EXPECT_EQ(reached[0].subject, "shard.conflicts");
}

TEST(BranchAndBound, FindsTheBestConstraintOnANamedValue) {
  const Program program = TwoProducts("", {"dot"});
  const Space space = Space::Of(program.variants[0].decisions, OverTwoAxes()).value();
  const RateBound rates(program, space);
  BranchAndBound::Options all = Roomy();
  all.all = true;
  const Searched exhaustive = SearchAll(space, rates, all);
  const Searched bounded = SearchAll(space, rates, Roomy());
  EXPECT_EQ(bounded.best.verdict.step, exhaustive.best.verdict.step);
  EXPECT_EQ(bounded.lower_bound, bounded.best.verdict.step);
  EXPECT_LT(bounded.judged, exhaustive.judged);
}

TEST(BranchAndBound, AGapIsKept) {
  const Program program = TwoProducts();
  const Space space = Space::Of(program.variants[0].decisions, OverTwoAxes()).value();
  const RateBound rates(program, space);
  const Searched exact = SearchAll(space, rates, Roomy());
  BranchAndBound::Options options = Roomy();
  options.gap = 0.2;
  const Searched rough = SearchAll(space, rates, options);
  EXPECT_LE(rough.judged, exact.judged);
  EXPECT_GE(Ratio(rough.lower_bound, rough.best.verdict.step), 0.8);
  EXPECT_LE(rough.lower_bound, exact.best.verdict.step);
}

TEST(BranchAndBound, WhatDoesNotFitIsLeftOut) {
  const Program program = TwoProducts();
  const Space space = Space::Of(program.variants[0].decisions, OverTwoAxes()).value();
  const RateBound rates(program, space);
  BranchAndBound::Options options = Roomy();
  // Weights are 1 MiB, x 64 KiB: only where all are split eight ways.
  options.usable = Bytes((1 << 20) / 8 + (64 << 10));
  const Searched searched = SearchAll(space, rates, options);
  EXPECT_GT(searched.tally.memory, 0);
  EXPECT_LE(searched.best.verdict.peak, options.usable);
}

TEST(BranchAndBound, ABoundAboveTheStepIsAnErrorOfOurs) {
  const Program program = TwoProducts();
  const Space space = Space::Of(program.variants[0].decisions, OverTwoAxes()).value();
  const RateBound rates(program, space);
  BranchAndBound search(space, rates, Roomy());
  const Candidate candidate = search.Next().value();
  Verdict verdict = Invented(rates, candidate);
  verdict.step = Picoseconds(1);
  EXPECT_TRUE(absl::IsInternal(search.Tell(candidate, verdict)));
}

TEST(BranchAndBound, WhatIsKnownIsBeaten) {
  const Program program = TwoProducts();
  const Space space = Space::Of(program.variants[0].decisions, OverTwoAxes()).value();
  const RateBound rates(program, space);
  BranchAndBound search(space, rates, Roomy());
  search.Know(Picoseconds(1));
  EXPECT_EQ(search.Next(), std::nullopt);
  EXPECT_EQ(search.LowerBound(), Picoseconds(1));
}

// Two products of 2 * 64 * 256 * 512 operations, split by what splits any of their dimensions.
TEST(RateBound, ProductsAreSplitByWhatMaySplitThem) {
  const Program program = TwoProducts();
  const Space space = Space::Of(program.variants[0].decisions, OverTwoAxes()).value();
  const RateBound rates(program, space);
  double one_device = 0;
  for (const MatrixOperation& product : program.variants[0].products) one_device += product.seconds;
  EXPECT_GT(one_device, 0);
  const auto share = [&](const std::vector<AxisSet>& decided) {
    return ToSeconds(rates.Time(1, decided)) / one_device;  // x=2,y=4
  };
  EXPECT_NEAR(share({}), 1.0 / 8, 1e-3);
  EXPECT_NEAR(share({0, 0, 0}), 1, 1e-3);
  EXPECT_NEAR(share({1, 0, 0}), 1.0 / 2, 1e-3);
  EXPECT_NEAR(share({1, 1, 0}), 1.0 / 2, 1e-3);  // one axis splits a product once
  EXPECT_NEAR(share({1, 2, 0}), 1.0 / 8, 1e-3);
  EXPECT_NEAR(share({1, 0}), 1.0 / 8, 1e-3);  // the last one is open
}

// A constraint may split what no argument does.
TEST(RateBound, AConstraintOnANamedValueMaySplitItsProducts) {
  const Program program = TwoProducts("", {"dot"});
  const Space space = Space::Of(program.variants[0].decisions, OverTwoAxes()).value();
  const RateBound rates(program, space);
  double one_device = 0;
  for (const MatrixOperation& product : program.variants[0].products) one_device += product.seconds;
  const auto share = [&](const std::vector<AxisSet>& decided) {
    return ToSeconds(rates.Time(1, decided)) / one_device;  // x=2,y=4
  };
  EXPECT_NEAR(share({0, 0, 0}), 1.0 / 8, 1e-3);  // what is named is open
  EXPECT_NEAR(share({0, 0, 0, kAsDecided, kAsDecided}), 1, 1e-3);
  EXPECT_NEAR(share({0, 0, 0, 1, kAsDecided}), 1.0 / 2, 1e-3);
  EXPECT_NEAR(share({0, 0, 0, 1, 2}), 1.0 / 8, 1e-3);
}

// Rows few enough that reading the weights takes longer than the products: what splits weights
// divides it, what splits rows does not.
TEST(RateBound, WeightsAreReadFromHbm) {
  const Program program = TwoProducts("", {}, /*reads=*/true);
  const Space space = Space::Of(program.variants[0].decisions, OverTwoAxes()).value();
  const RateBound rates(program, space);
  const double bytes_per_second = 819e9;  // of v5e
  const double weights = 2 * 256 * 512 * 4 / bytes_per_second;
  const double x = 64 * 256 * 4 / bytes_per_second;
  std::vector<AxisSet> axes(3, 0);
  EXPECT_NEAR(ToSeconds(rates.Time(1, axes)) / (weights + x), 1, 1e-3);
  axes[DecisionOf(space, "x 0")] = 2;  // y=4
  EXPECT_NEAR(ToSeconds(rates.Time(1, axes)) / (weights + x / 4), 1, 1e-3);
  axes[DecisionOf(space, "params['up'] 1")] = 1;  // x=2
  EXPECT_NEAR(ToSeconds(rates.Time(1, axes)) / (weights / 2 + x / 4), 1, 1e-3);
}

TEST(RateBound, ArgumentsTakeWhatIsLeftOfThem) {
  const Program program = TwoProducts();
  const Space space = Space::Of(program.variants[0].decisions, OverTwoAxes()).value();
  const RateBound rates(program, space);
  std::vector<AxisSet> axes(3, 0);
  EXPECT_EQ(rates.Memory(1, axes), Bytes((1 << 20) + (64 << 10)));
  axes[DecisionOf(space, "params['up'] 1")] = 2;
  EXPECT_EQ(rates.Memory(1, axes), Bytes((1 << 18) + (64 << 10)));
}

}  // namespace
}  // namespace tpusim::search
