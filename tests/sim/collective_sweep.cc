#include "tests/sim/collective_sweep.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <utility>

#include "configs/config.h"
#include "configs/status_macros.h"
#include "sim/simulate.h"
#include "tests/workloads/collectives/collective_interpreter.h"
#include "workloads/collectives/box.h"
#include "workloads/collectives/candidates.h"

namespace tpusim::testing {
namespace {

using collectives::CollectiveKind;

constexpr CollectiveKind kKinds[] = {CollectiveKind::kAllReduce, CollectiveKind::kAllGather,
                                     CollectiveKind::kReduceScatter, CollectiveKind::kAllToAll,
                                     CollectiveKind::kPermute};
constexpr std::array<int64_t, 4> kSizes = {kKiB, 64 * kKiB, 2 * kMiB, 64 * kMiB};
constexpr std::array<Skew, 4> kSkews = {Skew::kNone, Skew::kStraggler, Skew::kStarts,
                                        Skew::kSlowLink};
// Up to so many devices every combination is simulated.
constexpr int64_t kThorough = 64;

// A number from 0 to n - 1 that looks random and is always the same.
int64_t Pick(int64_t of, int64_t n) { return of * 2654435761 % 1'000'003 % n; }

collectives::CollectiveRequest RequestOf(const configs::Config& config, const SweepCase& c) {
  collectives::CollectiveRequest request;
  request.kind = c.kind;
  request.name = "swept";
  request.groups = collectives::GroupsAlong(config.topology, c.axes);
  const auto members = static_cast<int64_t>(request.groups.front().size());
  const bool shard = c.kind == CollectiveKind::kAllGather;
  request.operand_bytes = Bytes(std::max<int64_t>(4, shard ? c.bytes / members : c.bytes));
  if (c.kind != CollectiveKind::kPermute) return request;
  // Everybody to the member three further on, the last ones round to the first.
  for (const std::vector<int64_t>& group : request.groups) {
    for (int64_t m = 0; m < members; ++m) {
      request.pairs.emplace_back(group[m], group[(m + 3) % members]);
    }
  }
  request.groups.clear();
  return request;
}

// Devices wait for one of three times before they begin.
void DelayStarts(const configs::ChipParams& chip, isa::PodProgram& program) {
  const Picoseconds hop = chip.ici.hop_latency;
  const Picoseconds delays[] = {Picoseconds(0), hop * 3 / 10, hop * 27 / 10};
  std::map<std::pair<int32_t, int64_t>, int32_t> known;
  std::vector<isa::SharedBody> programs;
  for (size_t d = 0; d < program.program_of_device.size(); ++d) {
    const int32_t before = program.program_of_device[d];
    const int64_t delay = Pick(static_cast<int64_t>(d) + 1, 3);
    const auto [entry, fresh] =
        known.try_emplace({before, delay}, static_cast<int32_t>(programs.size()));
    if (fresh) {
      isa::Body body = *program.programs[before];
      isa::Block wait;
      wait.latency = ToCycles(delays[delay], chip.clock);
      body.insert(body.begin(), {wait});
      programs.push_back(std::make_shared<const isa::Body>(std::move(body)));
    }
    program.program_of_device[d] = entry->second;
  }
  program.programs = std::move(programs);
}

// Finish and bytes of every device. Folding may differ by the rounding of rates.
std::string Difference(const sim::Timeline& fast, const sim::Timeline& slow) {
  const auto differ = [](Picoseconds a, Picoseconds b) {
    const auto larger = static_cast<double>(std::max(a, b).value());
    return std::abs(static_cast<double>((a - b).value())) > std::max(10.0, 1e-9 * larger);
  };
  for (size_t d = 0; d < slow.devices.size(); ++d) {
    const sim::DeviceTotals &a = fast.devices[d], &b = slow.devices[d];
    if (differ(a.finish, b.finish) || differ(a.exposed, b.exposed)) {
      return fmt::format("device {} ends after {} ps instead of {}", d, a.finish.value(),
                         b.finish.value());
    }
    if (a.sent != b.sent || a.received != b.received ||
        std::abs((a.moved.hbm() - b.moved.hbm()).value()) > 1) {
      return fmt::format("device {} moves other bytes", d);
    }
  }
  return "";
}

}  // namespace

std::string SweepCase::Name() const {
  constexpr const char* kNames[] = {"together", "with a straggler", "at different times",
                                    "over a slow link"};
  return fmt::format("{} of {} B by {} on {} along axes {}, {}", collectives::KindName(kind), bytes,
                     algorithm, slice, fmt::join(axes, ","), kNames[static_cast<int>(skew)]);
}

std::vector<SweepCase> SweepCases(int64_t most_devices) {
  std::vector<SweepCase> cases;
  int64_t large = 0;
  for (const std::string& chip : configs::ChipNames()) {
    for (const std::string& shape : configs::SliceNames(chip)) {
      const std::string slice = fmt::format("{}-{}", chip, shape);
      const auto config = configs::LoadConfig(slice, {});
      TPUSIM_CHECK(config.ok(), Message(config.status()));
      if (config->devices() < 2 || config->devices() > most_devices) continue;
      std::vector<std::vector<int>> groups = {{0, 1, 2, collectives::kCoreAxis}};
      int long_axes = 0;
      for (int axis = 0; axis < configs::kMaxAxes; ++axis) {
        if (config->topology.shape()[axis] == 1) continue;
        groups.push_back({axis});
        ++long_axes;
      }
      if (long_axes < 2) groups.pop_back();  // the same as all
      for (const std::vector<int>& axes : groups) {
        for (const CollectiveKind kind : kKinds) {
          for (const std::string& family : collectives::Families()) {
            if (kind == CollectiveKind::kPermute && family != collectives::Families().front())
              break;
            int64_t way = 0;
            const int64_t only =
                config->devices() <= kThorough ? -1 : Pick(++large, kSizes.size() * kSkews.size());
            for (const int64_t bytes : kSizes) {
              for (const Skew skew : kSkews) {
                if (only >= 0 && way++ != only) continue;
                // Every step of all pairs of so many devices that share no rate: hours.
                if (only >= 0 && kind == CollectiveKind::kAllToAll && skew != Skew::kNone) continue;
                cases.push_back({slice, axes, kind, family, bytes, skew});
              }
            }
          }
        }
      }
    }
  }
  return cases;
}

SweepResult RunSweepCase(const SweepCase& c, std::string& difference) {
  const auto config = configs::LoadConfig(c.slice, {});
  TPUSIM_CHECK(config.ok(), Message(config.status()));
  isa::PodProgram program;
  const auto lowered =
      collectives::LowerCollective(*config, RequestOf(*config, c), program, {{"", c.algorithm}});
  if (!lowered.ok()) return SweepResult::kNoSuchAlgorithm;
  collectives::RunAlone(*lowered, program);
  sim::SimulationOptions fast;
  if (c.skew == Skew::kStraggler) {
    fast.impairments.chips.push_back({Pick(7, config->topology.chips()), 0.8});
  } else if (c.skew == Skew::kSlowLink) {
    const std::vector<configs::Link> links = config->topology.AllLinks();
    if (links.empty()) return SweepResult::kNoSuchAlgorithm;
    fast.impairments.links.push_back({links[Pick(7, static_cast<int64_t>(links.size()))], 0.5});
  } else if (c.skew == Skew::kStarts) {
    DelayStarts(config->chip, program);
  }
  sim::SimulationOptions slow = fast;
  slow.folding = sim::Folding::kOff;
  slow.every_step = true;
  const auto of_fast = sim::Simulate(*config, program, fast);
  const auto of_slow = sim::Simulate(*config, program, slow);
  if (!of_fast.ok() || !of_slow.ok()) {
    difference =
        fmt::format("fast: {}, slow: {}", Message(of_fast.status()), Message(of_slow.status()));
    return SweepResult::kDifferent;
  }
  difference = Difference(*of_fast, *of_slow);
  return difference.empty() ? SweepResult::kSame : SweepResult::kDifferent;
}

}  // namespace tpusim::testing
