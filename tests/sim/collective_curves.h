// Whole collectives on the machine, alone on a slice: as long as their closed form,
// never below what the wires allow, and close to it with the best algorithm where
// every axis closes. docs/validation/collective-curves.md has the same as curves.
#ifndef TPUSIM_TESTS_SIM_COLLECTIVE_CURVES_H_
#define TPUSIM_TESTS_SIM_COLLECTIVE_CURVES_H_

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/sim/in_child.h"
#include "tests/workloads/collectives/collective_interpreter.h"

namespace tpusim::collectives {

inline constexpr CollectiveKind kKinds[] = {CollectiveKind::kAllReduce, CollectiveKind::kAllGather,
                                            CollectiveKind::kReduceScatter,
                                            CollectiveKind::kAllToAll};

// V: the whole array of the group; of an all-to-all what each device sends.
inline CollectiveRequest OverAll(const configs::Config& config, CollectiveKind kind, int64_t v) {
  CollectiveRequest request;
  request.kind = kind;
  request.groups = GroupsAlong(config.topology, {0, 1, 2, kCoreAxis});
  request.operand_bytes =
      Bytes(kind == CollectiveKind::kAllGather ? CeilDiv(v, config.devices()) : v);
  return request;
}

inline Picoseconds Simulated(const configs::Config& config, const isa::PodProgram& program) {
  const testing::Figures figures = testing::InChild(config, program, {});
  return figures.times.empty() ? Picoseconds(0) : Picoseconds(figures.times[0]);
}

inline void CheckCurves(const std::string& slice, const std::vector<int64_t>& sizes) {
  const configs::Config config = *configs::LoadConfig(slice, {});
  // Colors that take the axes in turns load all links alike where all axes are rings of one length.
  bool alike = config.topology.devices_per_chip() == 1;
  int64_t length = 1;
  for (int axis = 0; axis < configs::kMaxAxes; ++axis) {
    const int64_t chips = config.topology.shape()[axis];
    if (chips == 1) continue;
    alike = alike && config.topology.wraps(axis) && (length == 1 || chips == length);
    length = chips;
  }
  for (const CollectiveKind kind : kKinds) {
    for (const int64_t v : sizes) {
      for (const char* algorithm : {kCompilersAlgorithm, kBestAlgorithm}) {
        isa::PodProgram program;
        const auto lowered =
            LowerCollective(config, OverAll(config, kind, v), program, {{"", algorithm}});
        ASSERT_TRUE(lowered.ok()) << lowered.status();
        RunAlone(*lowered, program);
        const Picoseconds simulated = Simulated(config, program);
        const std::string what = fmt::format("{} of {} B on {}: {}", lowered->info.kind, v, slice,
                                             lowered->info.algorithm);
        EXPECT_GE(simulated, lowered->info.bound) << what;
        EXPECT_NEAR(Ratio(simulated, lowered->info.expected), 1, 0.03) << what;
        // The bound is at the nominal rate, of which a ring reaches a part.
        if (alike && v == 4 * kGiB && algorithm == kBestAlgorithm) {
          const double reached = config.chip.ici.wrapped_efficiency;
          EXPECT_LE(Ratio(simulated, lowered->info.bound) * reached, 1.05) << what;
        }
      }
    }
  }
}

// "v5e-4x2" -> "v5e_4x2"
inline std::string TestName(const ::testing::TestParamInfo<const char*>& info) {
  std::string name = info.param;
  for (char& c : name) c = c == '-' ? '_' : c;
  return name;
}

}  // namespace tpusim::collectives

#endif  // TPUSIM_TESTS_SIM_COLLECTIVE_CURVES_H_
