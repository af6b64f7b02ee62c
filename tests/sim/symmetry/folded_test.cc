// A folded run gives what the unfolded one gives, on random pods and programs, with
// and without a fast-forward of kernels.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "sim/symmetry/levels.h"
#include "sim/symmetry/symmetry.h"
#include "tests/sim/in_child.h"
#include "tests/sim/pod_testing.h"

namespace tpusim::sim {
namespace {

using namespace tpusim::testing;  // NOLINT: the vocabulary of these tests

struct Case {
  configs::Config config;
  isa::PodProgram program;
  Impairments impairments;
  std::string what;
};

class Generator {
 public:
  explicit Generator(uint32_t seed) : random_(seed) {}

  Case Draw() {
    Case c;
    std::array<int64_t, 3> shape = {Pick({1, 2, 3, 4, 8}), Pick({1, 2, 4}), Pick({1, 1, 2})};
    std::array<bool, 3> wrap;
    for (int a = 0; a < 3; ++a) wrap[a] = shape[a] > 2 && Chance(2);
    const int64_t per_chip = Chance(5) ? 2 : 1;
    c.config = WithDevicesPerChip(TestConfig(shape, wrap), per_chip);
    const int64_t slices = Chance(4) ? Pick({2, 3}) : 1;
    c.config = WithSlices(c.config, slices);
    c.what = fmt::format("{} of {}x{}x{} wraps {}{}{}, {} per chip", slices, shape[0], shape[1],
                         shape[2], wrap[0], wrap[1], wrap[2], per_chip);
    DrawProgram(c);
    const configs::Topology& topology = c.config.topology;
    if (Chance(4)) {
      c.impairments.chips.push_back({Number(0, topology.chips() - 1), Chance(2) ? 0.8 : 0.5});
    }
    const std::vector<configs::Link> links = topology.AllLinks();
    if (!links.empty() && Chance(4)) {
      c.impairments.links.push_back(
          {links[Number(0, static_cast<int64_t>(links.size()) - 1)], Chance(2) ? 0.5 : 0.25});
    }
    return c;
  }

 private:
  // Everybody's work in a few phases; some phases only a part of the devices takes
  // part in, so that there are several programs.
  void DrawProgram(Case& c) {
    const int64_t devices = c.config.devices();
    std::vector<isa::Body> bodies(static_cast<size_t>(devices));
    keys_.assign(bodies.size(), "");
    const int64_t phases = Number(1, 4);
    int32_t flag = 0;
    isa::PodProgram& program = c.program;
    for (int64_t phase = 0; phase < phases; ++phase) {
      switch (Number(0, 3)) {
        case 0: {
          const isa::Block block = Compute(Number(1, 3000));
          const int64_t stride = Pick({1, 1, 2});
          for (int64_t d = 0; d < devices; d += stride) {
            bodies[d].push_back({block});
            keys_[d] += fmt::format("block {} ", phase);
          }
          break;
        }
        case 1: {
          isa::Kernel kernel;
          kernel.grid = {{Steps(), 1.0}};
          kernel.windows = {Input(Number(1, 100'000), 1), Output(Number(1, 50'000), 1)};
          kernel.block = Compute(Number(1, 100));
          for (isa::Body& body : bodies) body.push_back({kernel});
          break;
        }
        case 2: {
          isa::HostDma dma{Chance(2), Bytes(Number(1, 1000))};
          for (isa::Body& body : bodies) body.push_back({dma});
          break;
        }
        default:
          DrawExchange(c, bodies, flag++);
          break;
      }
    }
    program.flags = flag + 1;
    program.tokens = flag + 1;
    // Phases are the same for all who take part; only waits differ, by arrivals.
    std::map<std::string, int32_t> known;
    for (size_t d = 0; d < bodies.size(); ++d) {
      const auto [it, fresh] =
          known.try_emplace(keys_[d], static_cast<int32_t>(program.programs.size()));
      if (fresh) program.programs.push_back(std::make_shared<const isa::Body>(bodies[d]));
      program.program_of_device.push_back(it->second);
    }
  }

  // A shift by a vector, or everybody to the first of their row; while a kernel
  // runs, or alone.
  void DrawExchange(Case& c, std::vector<isa::Body>& bodies, int32_t flag) {
    const configs::Topology& topology = c.config.topology;
    const int64_t per_chip = topology.devices_per_chip();
    const bool gather = Chance(3);
    configs::Coordinates by;
    for (int a = 0; a < 3; ++a) by.at[a] = Number(0, topology.shape()[a] - 1);
    const int64_t other_core = Number(0, per_chip - 1);
    const int64_t other_slice = Number(0, topology.slices() - 1);
    std::vector<std::pair<int32_t, int32_t>> pairs;
    std::vector<int64_t> arrivals(bodies.size(), 0);
    for (int32_t d = 0; d < static_cast<int32_t>(bodies.size()); ++d) {
      configs::Coordinates at = topology.At(d / per_chip);
      for (int a = 0; a < 3; ++a) at.at[a] = (at.at[a] + by.at[a]) % topology.shape()[a];
      if (gather) at.at[0] = 0;
      const int64_t slice = (topology.SliceOf(d / per_chip) + other_slice) % topology.slices();
      const auto peer =
          static_cast<int32_t>(topology.ChipAt(at, slice) * per_chip + (d + other_core) % per_chip);
      pairs.emplace_back(d, peer);
      ++arrivals[peer];
    }
    isa::Rdma rdma;
    rdma.route = static_cast<int32_t>(c.program.routes.size());
    rdma.bytes = Bytes(Number(1, 200'000));
    rdma.arrival_flag = flag;
    if (Chance(3)) rdma.reduce = isa::ReduceAdd{4, 1};
    c.program.routes.push_back(RouteBetween(c.config, pairs));
    c.program.routes.back().name = fmt::format("route {}", rdma.route);
    const bool beside = Chance(2);
    isa::Kernel kernel;
    kernel.grid = {{Steps(), 1.0}};
    kernel.windows = {Input(Number(1, 100'000), 1)};
    kernel.block = Compute(Number(1, 100));
    for (size_t d = 0; d < bodies.size(); ++d) {
      isa::Body exchange = MakeBody(rdma);
      keys_[d] += fmt::format("exchange {} {} ", flag, arrivals[d]);
      if (arrivals[d] > 0) exchange.push_back({isa::Wait{flag, arrivals[d]}});
      if (beside) {
        bodies[d].push_back({isa::Start{
            {isa::StreamKind::kCollective, 0}, flag, std::make_shared<const isa::Body>(exchange)}});
        bodies[d].push_back({kernel});
        bodies[d].push_back({isa::Done{flag}});
      } else {
        bodies[d].insert(bodies[d].end(), exchange.begin(), exchange.end());
      }
    }
  }

  // Few, or enough for some to repeat.
  int64_t Steps() { return Chance(2) ? Number(1, 6) : Number(7, 40); }
  int64_t Number(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random_() % static_cast<uint64_t>(high - low + 1));
  }
  bool Chance(int64_t in) { return Number(1, in) == 1; }
  int64_t Pick(const std::vector<int64_t>& values) {
    return values[Number(0, static_cast<int64_t>(values.size()) - 1)];
  }

  std::mt19937 random_;
  std::vector<std::string> keys_;  // per device, what its program consists of
};

// Ten slices of the same test, so that they run side by side.
class Folded : public ::testing::TestWithParam<int> {};

TEST_P(Folded, EqualsUnfolded) {
  constexpr int kCases = 100;
  int64_t folded_classes = 0, repeated = 0;
  for (int i = 0; i < kCases; ++i) {
    const int seed = GetParam() * kCases + i;
    const Case c = Generator(static_cast<uint32_t>(seed)).Draw();
    SimulationOptions options;
    options.impairments = c.impairments;
    options.every_step = seed % 4 == 0;
    const Figures folded = InChild(c.config, c.program, options);
    options.folding = Folding::kOff;
    const Figures unfolded = InChild(c.config, c.program, options);
    ASSERT_FALSE(unfolded.times.empty()) << "case " << seed << ": " << c.what;
    ASSERT_EQ(folded.times.size(), unfolded.times.size()) << "case " << seed << ": " << c.what;
    for (size_t t = 0; t < folded.times.size(); ++t) {
      const int64_t tolerance = std::max<int64_t>(10, unfolded.times[t] / 1'000'000'000);
      ASSERT_NEAR(static_cast<double>(folded.times[t]), static_cast<double>(unfolded.times[t]),
                  static_cast<double>(tolerance))
          << "case " << seed << ": " << c.what;
    }
    ASSERT_EQ(folded.bytes, unfolded.bytes) << "case " << seed << ": " << c.what;
    if (!options.every_step) {
      options.every_step = true;
      repeated += InChild(c.config, c.program, options).events > unfolded.events;
    }
    folded_classes +=
        Symmetry(c.config, c.program, c.impairments, /*folds=*/true)
            .classes()
            .devices.classes() < c.config.devices();
  }
  // Not vacuous: most cases have something to fold.
  EXPECT_GT(folded_classes, kCases / 2);
  EXPECT_GT(repeated, kCases / 10);
}

// Coarser classes of random pods with stragglers and degraded links run to their end, and the step is
// off by no more than they say in all cases but one: 299 of 300 over all slices of the test.
TEST_P(Folded, ApproximationsSayHowFarOffTheyAre) {
  constexpr int kCases = 30;
  int64_t approximate = 0, beyond = 0;
  for (int i = 0; i < kCases; ++i) {
    const int seed = GetParam() * kCases + i;
    const Case c = Generator(static_cast<uint32_t>(seed)).Draw();
    SimulationOptions options;
    options.impairments = c.impairments;
    const int64_t exact = InChild(c.config, c.program, options).times.front();
    for (const Folding folding : {Folding::kApproximate, Folding::kAutomatic}) {
      options.folding = folding;
      options.exact_under = 1000;
      const Figures coarser = InChild(c.config, c.program, options);
      ASSERT_FALSE(coarser.times.empty()) << "case " << seed << ": " << c.what;
      approximate += coarser.error_bound > 0;
      beyond += std::abs(coarser.times.front() - exact) > coarser.error_bound + 10;
    }
  }
  EXPECT_GT(approximate, 0);
  EXPECT_LE(beyond, 1);
}

// An exact simulation by default has no more classes than the coarsest level, or stays within the
// budget: also where a few classes turn out to be too coarse on the way and are split.
TEST_P(Folded, WhatIsFinerThanTheCoarsestLevelHasABudget) {
  constexpr int kCases = 30;
  constexpr int64_t kFewClasses = 4, kBudget = 200;
  int64_t approximate = 0;
  for (int i = 0; i < kCases; ++i) {
    const int seed = GetParam() * kCases + i;
    const Case c = Generator(static_cast<uint32_t>(seed)).Draw();
    SimulationOptions options;
    options.impairments = c.impairments;
    options.folding = Folding::kAutomatic;
    options.exact_under = kBudget;
    const Figures figures = InChild(c.config, c.program, options);
    ASSERT_FALSE(figures.times.empty()) << "case " << seed << ": " << c.what;
    approximate += figures.error_bound > 0;
    if (figures.error_bound > 0) continue;
    const int64_t coarsest = Levels(c.config, c.program, c.impairments).DeviceClasses(0);
    EXPECT_TRUE(figures.device_classes <= std::max(coarsest, kFewClasses) ||
                figures.events <= 2 * kBudget)
        << "case " << seed << ": " << figures.device_classes << " classes for " << coarsest << ", "
        << figures.events << " events: " << c.what;
  }
  EXPECT_GT(approximate, 0);
}

INSTANTIATE_TEST_SUITE_P(RandomCases, Folded, ::testing::Range(0, 10));

}  // namespace
}  // namespace tpusim::sim
