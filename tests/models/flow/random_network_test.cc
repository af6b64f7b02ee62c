// Thousands of random networks against an independent solver that is as simple
// and slow as the definition, and against the definition itself.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "models/flow/max_min.h"
#include "models/flow/network.h"
#include "tests/models/flow/no_limit.h"

namespace tpusim::flow {
namespace {

struct System {
  std::vector<double> capacity;
  std::vector<double> cap;
  std::vector<std::vector<double>> weight;  // [flow][resource], dense
};

// Progressive filling, word for word: raise all rising flows until the first
// constraint holds with equality; freeze who is concerned; repeat.
std::vector<double> Reference(const System& s) {
  const size_t flows = s.cap.size(), resources = s.capacity.size();
  std::vector<double> rate(flows, 0);
  std::vector<bool> frozen(flows, false);
  for (;;) {
    double level = kInf;
    std::vector<double> full(resources, kInf);
    for (size_t r = 0; r < resources; ++r) {
      double used = 0, rising = 0;
      for (size_t f = 0; f < flows; ++f) {
        (frozen[f] ? used : rising) += s.weight[f][r] * (frozen[f] ? rate[f] : 1);
      }
      if (rising > 0) full[r] = std::max(0.0, s.capacity[r] - used) / rising;
      level = std::min(level, full[r]);
    }
    for (size_t f = 0; f < flows; ++f) {
      if (!frozen[f]) level = std::min(level, s.cap[f]);
    }
    if (level == kInf) return rate;
    std::vector<bool> freeze(flows, false);
    for (size_t f = 0; f < flows; ++f) {
      if (frozen[f]) continue;
      freeze[f] = s.cap[f] <= level * (1 + 1e-11);
      for (size_t r = 0; r < resources; ++r) {
        if (s.weight[f][r] > 0 && full[r] <= level * (1 + 1e-11)) freeze[f] = true;
      }
    }
    for (size_t f = 0; f < flows; ++f) {
      if (!freeze[f]) continue;
      rate[f] = level;
      frozen[f] = true;
    }
  }
}

// The definition: no resource above its capacity, no flow above its cap, and
// every flow is at its cap or crosses a full resource on which no flow is faster.
std::string Violation(const System& s, const std::vector<double>& rate) {
  constexpr double kEps = 1e-9;
  const size_t flows = s.cap.size(), resources = s.capacity.size();
  std::vector<double> load(resources, 0), fastest(resources, 0);
  for (size_t f = 0; f < flows; ++f) {
    for (size_t r = 0; r < resources; ++r) {
      load[r] += s.weight[f][r] * rate[f];
      if (s.weight[f][r] > 0) fastest[r] = std::max(fastest[r], rate[f]);
    }
  }
  for (size_t r = 0; r < resources; ++r) {
    if (load[r] > s.capacity[r] * (1 + kEps)) return fmt::format("overloaded resource {}", r);
  }
  for (size_t f = 0; f < flows; ++f) {
    if (rate[f] > s.cap[f] * (1 + kEps)) return fmt::format("flow above its cap: {}", f);
    bool stopped = rate[f] >= s.cap[f] * (1 - kEps);
    for (size_t r = 0; r < resources; ++r) {
      stopped |= s.weight[f][r] > 0 && load[r] >= s.capacity[r] * (1 - kEps) &&
                 rate[f] >= fastest[r] * (1 - kEps);
    }
    if (!stopped) return fmt::format("flow could be faster: {}", f);
  }
  return "";
}

// Few distinct values (ties, like real chips) or arbitrary ones.
System RandomSystem(std::mt19937_64& random) {
  auto pick = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  auto real = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random);
  };
  const bool round = pick(0, 1) == 0;
  const int flows = pick(1, 24), resources = pick(1, 12);
  System s;
  for (int r = 0; r < resources; ++r) {
    s.capacity.push_back(round ? 45e9 * pick(1, 4) : real(1e9, 1e12));
    if (pick(0, 19) == 0) s.capacity.back() = 0;
  }
  for (int f = 0; f < flows; ++f) {
    std::vector<double> weight(resources, 0);
    const int uses = pick(1, std::min(4, resources));
    for (int u = 0; u < uses; ++u) {
      weight[pick(0, resources - 1)] = round ? pick(1, 3) : std::exp(real(-4, 4));
    }
    s.weight.push_back(weight);
    s.cap.push_back(pick(0, 2) > 0 ? kInf : round ? 15e9 * pick(1, 6) : real(1e8, 1e11));
  }
  return s;
}

TEST(RandomNetworks, SolverAgreesWithTheReferenceAndTheDefinition) {
  std::mt19937_64 random(20240607);
  MaxMinSolver solver;
  for (int trial = 0; trial < 5000; ++trial) {
    const System s = RandomSystem(random);
    std::vector<uint32_t> use_begin = {0};
    std::vector<MaxMinUse> uses;
    for (const std::vector<double>& weight : s.weight) {
      for (uint32_t r = 0; r < weight.size(); ++r) {
        if (weight[r] > 0) uses.push_back({r, weight[r]});
      }
      use_begin.push_back(static_cast<uint32_t>(uses.size()));
    }
    std::vector<double> rates(s.cap.size());
    solver.Solve({s.capacity, s.cap, use_begin, uses}, rates);
    const std::vector<double> reference = Reference(s);
    for (size_t f = 0; f < rates.size(); ++f) {
      ASSERT_NEAR(rates[f], reference[f], 1e-9 * reference[f]) << "trial " << trial;
    }
    ASSERT_EQ(Violation(s, rates), "") << "trial " << trial;
  }
}

TEST(RandomNetworks, IncrementalSolvesEqualSolvingEverythingAnew) {
  // Flows come and go at random instants; after each, the rates of the active flows are
  // those of the whole system solved from scratch.
  std::mt19937_64 random(77);
  uint64_t compared = 0;
  for (int trial = 0; trial < 1000; ++trial) {
    System all = RandomSystem(random);
    const size_t flows = all.cap.size(), resources = all.capacity.size();
    Network net;
    for (size_t r = 0; r < resources; ++r) {
      all.capacity[r] = std::max(all.capacity[r], 1e9);  // every flow comes to its end
      net.AddResource(fmt::format("r{}", r), all.capacity[r]);
    }
    std::vector<FlowId> ids(flows);
    std::vector<bool> started(flows, false);
    std::vector<double> charged(resources, 0);
    auto check = [&] {
      System s;
      s.capacity = all.capacity;
      std::vector<double> rates;
      for (size_t f = 0; f < flows; ++f) {
        if (!started[f] || !net.IsActive(ids[f])) continue;
        s.cap.push_back(all.cap[f]);
        s.weight.push_back(all.weight[f]);
        rates.push_back(net.Rate(ids[f]));
      }
      const std::vector<double> reference = Reference(s);
      for (size_t i = 0; i < rates.size(); ++i) {
        ASSERT_NEAR(rates[i], reference[i], 1e-9 * reference[i]) << "trial " << trial;
        ++compared;
      }
      ASSERT_EQ(net.CheckConservation(), "");
    };
    int64_t now = 0;
    for (size_t f = 0; f < flows; ++f) {
      now += std::uniform_int_distribution<int64_t>(0, 2)(random) * 20'000;
      net.Advance(Picoseconds(now));
      const double amount = std::uniform_real_distribution<double>(1, 4000)(random);
      std::vector<ResourceUse> uses;
      for (uint32_t r = 0; r < resources; ++r) {
        if (all.weight[f][r] == 0) continue;
        uses.push_back({ResourceId{r}, all.weight[f][r]});
        charged[r] += all.weight[f][r] * amount;
      }
      ids[f] = net.Start(Picoseconds(now), {amount, all.cap[f], uses, f});
      started[f] = true;
      ASSERT_NO_FATAL_FAILURE(check());
    }
    while (auto t = net.NextCompletion()) {
      net.Advance(*t);
      ASSERT_NO_FATAL_FAILURE(check());
    }
    ASSERT_EQ(net.active_flows(), 0);
    for (uint32_t r = 0; r < resources; ++r) {
      ASSERT_NEAR(net.Carried(ResourceId{r}), charged[r], 1e-9 * charged[r]);
      ASSERT_EQ(net.Rate(ResourceId{r}), 0);
    }
  }
  EXPECT_GT(compared, 50'000);
}

TEST(RandomNetworks, TimesDoNotDependOnTheOrderOfStarts) {
  // The same flows started in another order within the same instants: all
  // completion times agree within 1 ps of rounding.
  std::mt19937_64 random(5);
  for (int trial = 0; trial < 500; ++trial) {
    const System s = RandomSystem(random);
    const size_t flows = s.cap.size();
    std::vector<double> amount;
    std::vector<int64_t> start;
    std::vector<size_t> order;
    for (size_t f = 0; f < flows; ++f) {
      amount.push_back(512 * std::uniform_int_distribution<int>(1, 8)(random));
      start.push_back(10'000 * static_cast<int64_t>(f / 6));
      order.push_back(f);
    }
    auto run = [&](bool reversed) {
      std::vector<size_t> sequence = order;
      if (reversed) {
        std::stable_sort(sequence.begin(), sequence.end(), [&](size_t a, size_t b) {
          return start[a] != start[b] ? start[a] < start[b] : a > b;
        });
      }
      Network net;
      for (const double capacity : s.capacity) net.AddResource("r", capacity);
      std::vector<int64_t> end(flows, -1);
      auto collect = [&](int64_t now) {
        for (const Completed& c : net.Advance(Picoseconds(now))) end[c.tag] = c.time.value();
      };
      for (const size_t f : sequence) {
        collect(start[f]);
        std::vector<ResourceUse> uses;
        for (uint32_t r = 0; r < s.capacity.size(); ++r) {
          uses.push_back({ResourceId{r}, s.weight[f][r]});
        }
        net.Start(Picoseconds(start[f]), {amount[f], s.cap[f], uses, f});
      }
      while (auto t = net.NextCompletion()) collect(t->value());
      return end;
    };
    const std::vector<int64_t> forward = run(false), backward = run(true);
    for (size_t f = 0; f < flows; ++f) {
      const double slack = 2 + 1e-9 * static_cast<double>(forward[f]);
      ASSERT_NEAR(forward[f], backward[f], slack) << "trial " << trial;
    }
  }
}

}  // namespace
}  // namespace tpusim::flow
