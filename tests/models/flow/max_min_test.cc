// The solver alone, on systems small enough to solve by hand. Every test opens
// with its system of inequalities; a, b, c are rates.
#include "models/flow/max_min.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <utility>
#include <vector>

#include "tests/models/flow/no_limit.h"

namespace tpusim::flow {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;

struct FlowRow {
  double cap;
  std::vector<MaxMinUse> uses;
};

std::vector<double> Rates(MaxMinSolver& solver, const std::vector<double>& capacity,
                          const std::vector<FlowRow>& flows) {
  std::vector<double> cap;
  std::vector<uint32_t> use_begin = {0};
  std::vector<MaxMinUse> uses;
  for (const FlowRow& flow : flows) {
    cap.push_back(flow.cap);
    uses.insert(uses.end(), flow.uses.begin(), flow.uses.end());
    use_begin.push_back(static_cast<uint32_t>(uses.size()));
  }
  std::vector<double> rates(flows.size(), -1);
  solver.Solve({capacity, cap, use_begin, uses}, rates);
  return rates;
}

std::vector<double> Rates(const std::vector<double>& capacity, const std::vector<FlowRow>& flows) {
  MaxMinSolver solver;
  return Rates(solver, capacity, flows);
}

TEST(MaxMin, OneResourceTwoFlows) {
  // a + b <= 10            =>  a = b = 5
  EXPECT_THAT(Rates({10}, {{kInf, {{0, 1}}}, {kInf, {{0, 1}}}}), ElementsAre(5, 5));
}

TEST(MaxMin, ACapLeavesTheRestToTheOthers) {
  // a + b + c <= 12, a <= 2   =>  a = 2, b = c = (12 - 2) / 2 = 5
  EXPECT_THAT(Rates({12}, {{2, {{0, 1}}}, {kInf, {{0, 1}}}, {kInf, {{0, 1}}}}),
              ElementsAre(2, 5, 5));
}

TEST(MaxMin, CapsThatCannotFillTheResource) {
  // a + b <= 10, a <= 3, b <= 4   =>  a = 3, b = 4
  EXPECT_THAT(Rates({10}, {{3, {{0, 1}}}, {4, {{0, 1}}}}), ElementsAre(3, 4));
}

TEST(MaxMin, AFlowWithoutUsesHasItsCap) {
  // a <= 3; b <= 7
  EXPECT_THAT(Rates({7}, {{3, {}}, {kInf, {{0, 1}}}}), ElementsAre(3, 7));
}

TEST(MaxMin, ChainWithCrossTraffic) {
  // a + b     <= 1     (first link: the long flow a and the local flow b)
  // a     + c <= 1     (second link: a and c)
  // All rise to 1/2: both links are full at once.
  EXPECT_THAT(Rates({1, 1}, {{kInf, {{0, 1}, {1, 1}}}, {kInf, {{0, 1}}}, {kInf, {{1, 1}}}}),
              ElementsAre(0.5, 0.5, 0.5));
}

TEST(MaxMin, ChainWithTwoLocalFlowsOnOneLink) {
  // a + b + c     <= 1
  // a         + d <= 1
  // The first link is full at 1/3 = a = b = c; then d = 1 - 1/3 = 2/3.
  EXPECT_THAT(
      Rates({1, 1},
            {{kInf, {{0, 1}, {1, 1}}}, {kInf, {{0, 1}}}, {kInf, {{0, 1}}}, {kInf, {{1, 1}}}}),
      ElementsAre(DoubleNear(1.0 / 3, 1e-15), DoubleNear(1.0 / 3, 1e-15),
                  DoubleNear(1.0 / 3, 1e-15), DoubleNear(2.0 / 3, 1e-15)));
}

TEST(MaxMin, WeightsConsumeButDoNotShare) {
  // 2 a + b <= 12   =>  equal rates a = b = 12 / 3 = 4; a consumes 8 of the 12.
  EXPECT_THAT(Rates({12}, {{kInf, {{0, 2}}}, {kInf, {{0, 1}}}}), ElementsAre(4, 4));
}

TEST(MaxMin, WeightsOnTwoResources) {
  // 3 a + b     <= 12
  //       b + c <= 10
  // Levels: 12 / 4 = 3 and 10 / 2 = 5. First a = b = 3, then c = 10 - 3 = 7.
  EXPECT_THAT(Rates({12, 10}, {{kInf, {{0, 3}}}, {kInf, {{0, 1}, {1, 1}}}, {kInf, {{1, 1}}}}),
              ElementsAre(3, 3, 7));
}

TEST(MaxMin, Triangle) {
  // Links 0, 1, 2 of capacities 2, 3, 5; every flow crosses two of them.
  // a + b     <= 2    => level 1: a = b = 1
  //     b + c <= 3    => c <= 3 - 1 = 2
  // a     + c <= 5    => c <= 5 - 1 = 4
  // so c = 2.
  EXPECT_THAT(Rates({2, 3, 5},
                    {{kInf, {{0, 1}, {2, 1}}}, {kInf, {{0, 1}, {1, 1}}}, {kInf, {{1, 1}, {2, 1}}}}),
              ElementsAre(1, 1, 2));
}

TEST(MaxMin, ThreeLevelsOneAfterTheOther) {
  // a + b         <= 2      a = b = 1
  //     b + c     <= 4      c = 4 - 1 = 3
  //         c + d <= 9      d = 9 - 3 = 6
  EXPECT_THAT(
      Rates(
          {9, 2, 4},
          {{kInf, {{1, 1}}}, {kInf, {{1, 1}, {2, 1}}}, {kInf, {{2, 1}, {0, 1}}}, {kInf, {{0, 1}}}}),
      ElementsAre(1, 1, 3, 6));
}

TEST(MaxMin, ADeadResourceStopsItsFlowsOnly) {
  // a     <= 0
  // a + b <= 8   =>  a = 0, b = 8
  EXPECT_THAT(Rates({0, 8}, {{kInf, {{0, 1}, {1, 1}}}, {kInf, {{1, 1}}}}), ElementsAre(0, 8));
}

TEST(MaxMin, ATinyWeightAfterALargeOneIsStillRight) {
  // 1e9 a + 1e-9 b <= 1e9, a <= 0.5   =>  a = 0.5, b = (1e9 - 0.5e9) / 1e-9 = 5e17
  // Subtracting 1e9 from the weight sum leaves nothing of 1e-9.
  EXPECT_THAT(Rates({1e9}, {{0.5, {{0, 1e9}}}, {kInf, {{0, 1e-9}}}}),
              ElementsAre(0.5, DoubleNear(5e17, 1e6)));
}

TEST(MaxMin, EqualStructureGivesIdenticalRates) {
  // 64 resources of 45e9 in a ring, flow i on resources i and i + 1, with
  // weights 1/3 and 2/3:  1/3 x_i + 2/3 x_(i-1) <= 45e9  =>  all x = 45e9, and
  // the same to the last bit, or symmetric chips would drift apart.
  std::vector<FlowRow> flows;
  for (uint32_t i = 0; i < 64; ++i) {
    flows.push_back({kInf, {{i, 1.0 / 3}, {(i + 1) % 64, 2.0 / 3}}});
  }
  const std::vector<double> rates = Rates(std::vector<double>(64, 45e9), flows);
  EXPECT_THAT(rates, ::testing::Each(rates[0]));
  EXPECT_NEAR(rates[0], 45e9, 1e-3);
}

// A few servers are searched in another way than many: neither changes a rate.
TEST(MaxMin, CopiesSideBySideHaveTheRatesOfOne) {
  std::mt19937 random(5);
  const auto number = [&](uint32_t low, uint32_t high) {
    return low + static_cast<uint32_t>(random()) % (high - low + 1);
  };
  for (int i = 0; i < 200; ++i) {
    const uint32_t servers = number(1, 6), flows = number(1, 8);
    std::vector<double> capacity;
    for (uint32_t r = 0; r < servers; ++r) capacity.push_back(number(0, 20) * 1.1e9);
    std::vector<FlowRow> one;
    for (uint32_t f = 0; f < flows; ++f) {
      FlowRow& row = one.emplace_back(FlowRow{number(0, 2) == 0 ? number(1, 9) * 0.7e9 : kInf, {}});
      for (uint32_t r = 0; r < servers; ++r) {
        if (number(0, 1) == 0) row.uses.push_back({r, number(1, 3) / 3.0});
      }
      if (row.uses.empty()) row.uses.push_back({number(0, servers - 1), 1});
    }
    constexpr uint32_t kCopies = 40;
    std::vector<double> capacities;
    std::vector<FlowRow> many;
    for (uint32_t copy = 0; copy < kCopies; ++copy) {
      capacities.insert(capacities.end(), capacity.begin(), capacity.end());
      for (FlowRow row : one) {
        for (MaxMinUse& use : row.uses) use.resource += copy * servers;
        many.push_back(std::move(row));
      }
    }
    const std::vector<double> alone = Rates(capacity, one), beside = Rates(capacities, many);
    for (size_t f = 0; f < many.size(); ++f) {
      EXPECT_NEAR(beside[f], alone[f % flows], 1e-11 * alone[f % flows]) << "case " << i;
    }
  }
}

TEST(MaxMin, ASolverCanBeUsedAgain) {
  // Scratch of a larger problem must not leak into a smaller one.
  MaxMinSolver solver;
  EXPECT_THAT(Rates(solver, {6, 6}, {{kInf, {{0, 1}}}, {1, {{0, 1}}}, {kInf, {{1, 2}}}}),
              ElementsAre(5, 1, 3));
  EXPECT_THAT(Rates(solver, {4}, {{kInf, {{0, 1}}}}), ElementsAre(4));
}

}  // namespace
}  // namespace tpusim::flow
