// Links that another one always outdoes set no rate.
#include "sim/symmetry/limiting_links.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "models/flow/network.h"

namespace tpusim::sim {
namespace {

using ::testing::ElementsAre;

// A way over links of these classes, each crossed so many times.
RouteLoad Over(const std::vector<RouteLoad::OnLinks>& links) {
  RouteLoad load;
  load.links = links;
  return load;
}

TEST(LimitingLinks, ALinkThatIsCrossedByFewerOfTheSameIsOutdone) {
  // a crosses 0 and 1, b only 1: 0 is never fuller than 1. Link 2 is crossed by nothing.
  EXPECT_THAT(LimitingLinks({{Over({{0, 1}, {1, 1}}), Over({{1, 1}})}}, {10, 10, 10}),
              ElementsAre(false, true, false));
  // On another route it is the same.
  EXPECT_THAT(LimitingLinks({{Over({{0, 1}, {1, 1}})}, {Over({{1, 1}})}}, {10, 10}),
              ElementsAre(false, true));
}

TEST(LimitingLinks, ALinkOfLowerRateOrMoreTransfersLimits) {
  EXPECT_THAT(LimitingLinks({{Over({{0, 1}, {1, 1}}), Over({{1, 1}})}}, {5, 10}),
              ElementsAre(true, true));
  EXPECT_THAT(LimitingLinks({{Over({{0, 2}, {1, 1}}), Over({{1, 1}})}}, {10, 10}),
              ElementsAre(true, true));
  // Twice as often at twice the rate is the same load.
  EXPECT_THAT(LimitingLinks({{Over({{0, 2}, {1, 1}}), Over({{1, 1}})}}, {20, 10}),
              ElementsAre(false, true));
}

TEST(LimitingLinks, TheFirstOfEqualLinksLimits) {
  EXPECT_THAT(LimitingLinks({{Over({{2, 1}, {1, 1}, {0, 1}})}}, {10, 10, 10}),
              ElementsAre(true, false, false));
}

TEST(LimitingLinks, LinksOfDifferentTransfersAllLimit) {
  const std::vector<RouteLoad> ways = {Over({{0, 1}, {1, 1}}), Over({{1, 1}, {2, 1}}),
                                       Over({{2, 1}, {0, 1}})};
  EXPECT_THAT(LimitingLinks({ways}, {10, 10, 10}), ElementsAre(true, true, true));
}

// Rates of some of the transfers with and without the links that limit nothing.
TEST(LimitingLinks, RatesAreTheSameWithoutTheOthers) {
  std::mt19937 random(3);
  const auto number = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % static_cast<uint32_t>(high - low + 1));
  };
  int64_t outdone = 0;
  for (int i = 0; i < 300; ++i) {
    const int64_t links = number(2, 8);
    std::vector<double> rates;
    for (int64_t l = 0; l < links; ++l) rates.push_back(static_cast<double>(number(1, 3)) * 1e9);
    std::vector<std::vector<RouteLoad>> loads;
    for (int64_t route = number(1, 4); route > 0; --route) {
      loads.emplace_back();
      for (int64_t way = number(1, 3); way > 0; --way) {
        RouteLoad load;
        for (int32_t l = 0; l < links; ++l) {
          if (number(0, 2) > 0) load.links.push_back({l, number(1, 2)});
        }
        loads.back().push_back(std::move(load));
      }
    }
    const std::vector<bool> limiting = LimitingLinks(loads, rates);
    flow::Network all, some;
    for (const double rate : rates) {
      all.AddResource("link", rate);
      some.AddResource("link", rate);
    }
    std::vector<std::pair<flow::FlowId, flow::FlowId>> flows;
    for (const std::vector<RouteLoad>& of_route : loads) {
      for (const RouteLoad& load : of_route) {
        if (load.links.empty() || number(0, 3) == 0) continue;
        flow::FlowSpec over_all, over_some;
        over_all.amount = over_some.amount = 1e9;
        for (const RouteLoad::OnLinks& on : load.links) {
          const flow::ResourceUse use{{static_cast<uint32_t>(on.link_class)},
                                      static_cast<double>(on.flows)};
          over_all.uses.push_back(use);
          if (limiting[on.link_class]) over_some.uses.push_back(use);
          outdone += limiting[on.link_class] ? 0 : 1;
        }
        flows.emplace_back(all.Start(Picoseconds(0), over_all),
                           some.Start(Picoseconds(0), over_some));
      }
    }
    for (const auto& [one, other] : flows) {
      EXPECT_NEAR(some.Rate(other), all.Rate(one), 1e-9 * all.Rate(one)) << "case " << i;
    }
  }
  EXPECT_GT(outdone, 300);
}

}  // namespace
}  // namespace tpusim::sim
