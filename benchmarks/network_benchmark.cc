// Speed of the flow network in situations that are common in a pod.
#include <benchmark/benchmark.h>

#include <limits>
#include <vector>

#include "models/flow/network.h"

namespace tpusim::flow {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// A 16x16 torus, every chip sending on its four links at once, step after step.
// `hbm` decides whether memories couple the whole pod (100e9) or not (819e9).
void TorusSteps(benchmark::State& state) {
  constexpr int kSide = 16;
  const double hbm_rate = static_cast<double>(state.range(0)) * 1e9;
  Network net;
  std::vector<ResourceId> hbm, link;
  for (int chip = 0; chip < kSide * kSide; ++chip) {
    hbm.push_back(net.AddResource("hbm", hbm_rate));
    for (int d = 0; d < 4; ++d) link.push_back(net.AddResource("link", 45e9));
  }
  int64_t now = 0;
  uint64_t flows = 0;
  for (auto _ : state) {
    for (int x = 0; x < kSide; ++x) {
      for (int y = 0; y < kSide; ++y) {
        const int chip = x * kSide + y;
        const int neighbour[4] = {(x + 1) % kSide * kSide + y, (x + kSide - 1) % kSide * kSide + y,
                                  x * kSide + (y + 1) % kSide, x * kSide + (y + kSide - 1) % kSide};
        for (int d = 0; d < 4; ++d) {
          const ResourceUse uses[] = {
              {hbm[chip], 1}, {link[chip * 4 + d], 1}, {hbm[neighbour[d]], 1}};
          net.Start(Picoseconds(now), 1e6, kInf, uses, flows++);
        }
      }
    }
    now = net.NextCompletion()->value();
    benchmark::DoNotOptimize(net.Advance(Picoseconds(now)));
  }
  state.SetItemsProcessed(static_cast<int64_t>(flows));
}
BENCHMARK(TorusSteps)->Arg(819)->Arg(100)->Unit(benchmark::kMicrosecond);

// Starts and ends at different times: chips with a memory and eight queues each,
// every queue starting its next transfer when the last one ends.
void StaggeredQueues(benchmark::State& state) {
  const int chips = static_cast<int>(state.range(0));
  Network net;
  std::vector<ResourceId> hbm;
  uint64_t serial = 0;
  auto start = [&](Picoseconds now, uint64_t chip) {
    const ResourceUse uses[] = {{hbm[chip], 1}};
    net.Start(now, 1000.0 + static_cast<double>(serial++ % 97), 200e9, uses, chip);
  };
  for (int chip = 0; chip < chips; ++chip) hbm.push_back(net.AddResource("hbm", 819e9));
  for (int i = 0; i < chips * 8; ++i) start(Picoseconds(0), i % chips);
  uint64_t ended = 0;
  for (auto _ : state) {
    const Picoseconds now = *net.NextCompletion();
    for (const Completed& done : net.Advance(now)) {
      start(now, done.tag);
      ++ended;
    }
  }
  state.SetItemsProcessed(static_cast<int64_t>(ended));
}
BENCHMARK(StaggeredQueues)->Arg(1)->Arg(256);

// The worst case: one system of n flows in which each end re-rates all others.
void OneBigComponent(benchmark::State& state) {
  Network net;
  const ResourceId nic = net.AddResource("nic", 25e9);
  uint64_t serial = 0;
  auto start = [&](Picoseconds now) {
    const ResourceUse uses[] = {{nic, 1}};
    net.Start(now, 1000.0 + static_cast<double>(serial++ % 97), kInf, uses, 0);
  };
  for (int i = 0; i < state.range(0); ++i) start(Picoseconds(i));
  for (auto _ : state) {
    const Picoseconds now = *net.NextCompletion();
    for (size_t i = net.Advance(now).size(); i > 0; --i) start(now + Picoseconds(1));
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(OneBigComponent)->Arg(16)->Arg(1024);

}  // namespace
}  // namespace tpusim::flow
