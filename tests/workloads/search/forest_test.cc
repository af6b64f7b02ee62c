#include "workloads/search/forest.h"

#include "search_testing.h"
#include "workloads/search/statements.h"

namespace tpusim::search {
namespace {

Program WithDonation() {
  Program program = TwoProducts();
  Variant& donated = program.variants.emplace_back();
  donated.donated = true;
  donated.products = program.variants[0].products;
  donated.decisions = program.variants[0].decisions;
  return program;
}

// Donated, a step takes nine tenths of what it takes otherwise.
Verdict DonatedIsShorter(const RateBound& rates, const Candidate& candidate) {
  Verdict verdict;
  verdict.kind = Verdict::Kind::kSimulated;
  const auto mesh = static_cast<size_t>(candidate.mesh);
  verdict.bound = rates.Time(mesh, candidate.axes);
  verdict.step = verdict.bound + Picoseconds(candidate.variant == 0 ? 10'000 : 9'000);
  verdict.peak = rates.Memory(mesh, candidate.axes);
  return verdict;
}

TEST(Forest, FindsTheFormWithTheShortestStep) {
  const Program program = WithDonation();
  std::vector<Space> spaces;
  for (const Variant& variant : program.variants) {
    spaces.push_back(Space::Of(variant.decisions, OverTwoAxes()).value());
  }
  const std::vector<RateBound> rates = {{program, spaces[0], 0}, {program, spaces[1], 1}};
  BranchAndBound::Options options;
  options.usable = Bytes(int64_t{1} << 40);
  Forest forest(spaces, rates, options);
  while (const std::optional<Candidate> candidate = forest.Next()) {
    Verdict verdict = DonatedIsShorter(rates[0], *candidate);
    if (verdict.bound >= forest.Cutoff()) verdict.kind = Verdict::Kind::kBounded;
    ASSERT_TRUE(forest.Tell(*candidate, verdict).ok());
  }
  const Found best = forest.best().value();
  EXPECT_EQ(best.candidate.variant, 1);
  EXPECT_EQ(forest.LowerBound(), best.verdict.step);
  EXPECT_EQ(ToString(program, spaces[1], best.candidate).find("donated"),
            std::string("x=1,y=8; ").size());
  // Each choice is one of each variant, and each became something.
  const Tally t = forest.tally();
  EXPECT_EQ(t.all, 2 * spaces[0].Count());
  EXPECT_EQ(t.all, t.impossible + t.memory + t.rates + t.judged);
}

TEST(Forest, WhatOneFindsIsSuggestedToTheOthers) {
  const Program program = WithDonation();
  std::vector<Space> spaces;
  for (const Variant& variant : program.variants) {
    spaces.push_back(Space::Of(variant.decisions, OverTwoAxes()).value());
  }
  const std::vector<RateBound> rates = {{program, spaces[0], 0}, {program, spaces[1], 1}};
  BranchAndBound::Options options;
  options.usable = Bytes(int64_t{1} << 40);
  Forest forest(spaces, rates, options);
  const Candidate first = forest.Next().value();
  ASSERT_TRUE(forest.Tell(first, DonatedIsShorter(rates[0], first)).ok());
  Candidate twin = first;
  twin.variant = 1 - first.variant;
  EXPECT_EQ(forest.Next().value(), twin);
}

}  // namespace
}  // namespace tpusim::search
