// Kernels of sums: spans, what they add, and rings in the order of a group.
#include "workloads/collectives/sum_kernel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs/config.h"
#include "tests/workloads/collectives/collective_interpreter.h"
#include "tests/workloads/collectives/requests.h"

namespace tpusim::collectives {
namespace {

double TimeAsCompiled(const configs::Config& config, const CollectiveRequest& request,
                      const AlgorithmOverrides& overrides = {}) {
  return ToMicroseconds(EstimateCollective(config, request, overrides)->expected);
}

// v5p 2x2x1: 9e10 * 0.94 B/s between two chips, 2.461e12 of HBM, hops of 0.84 us, launch 2.57 us;
// copies begin after 0.667 us (reads) and 0.624 us (writes). 16 MiB of scoped VMEM.
TEST(SumKernelTest, AScatterOverTwoPairsReadsSpanBySpan) {
  // One span of 2^20 B. Two barriers of all chips, two hops to the first chip and two back, and
  // two of neighbours, of which the launch has one: 9 hops = 7.56 us. Read 0.667 + 0.426, write a
  // quarter: 0.624 + 0.107. Each half sends 2^18, then 2^17 B: 4.648 us and 2 hops.
  const configs::Config config = *configs::LoadConfig("v5p-2x2x1", {});
  const CollectiveRequest small = Along(config, CollectiveKind::kReduceScatter, {0, 1}, kMiB);
  EXPECT_NEAR(TimeAsCompiled(config, small), 2.57 + 7.56 + 1.093 + 0.731 + 4.648 + 1.68, 0.01);
  // 32.768 MB are 8 spans, of at most 12 MiB * 2 / 6: what they add comes 8 times; 7 times more
  // comes the barrier of the launch, and a hop for each of two phases.
  const CollectiveRequest large = Along(config, CollectiveKind::kReduceScatter, {0, 1}, 32768000);
  const double copies = 8 * (0.667 + 0.624) + (32.768 + 8.192) / 2.46085;
  const double transfers = 3 * 4.096e6 / 84.6e3;
  EXPECT_NEAR(TimeAsCompiled(config, large),
              2.57 + 8 * 7.56 + copies + transfers + 1.68 + 7 * 3 * 0.84, 0.1);
  // By name it is the bare algorithm.
  EXPECT_NEAR(TimeAsCompiled(config, large, {{"", "rotated"}}), 2.57 + transfers + 1.68, 0.1);
}

TEST(SumKernelTest, BodiesTakeAsLongAsTheClosedForm) {
  for (const char* slice : {"v5p-2x2x1", "v5p-2x2x2", "v5e-2x2", "v5e-4x2", "v6e-4x4"}) {
    const configs::Config config = *configs::LoadConfig(slice, {});
    for (const CollectiveKind kind : {CollectiveKind::kAllReduce, CollectiveKind::kReduceScatter}) {
      int64_t instructions = 0;
      for (const int64_t bytes : {256 * int64_t{1024}, 4 * kMiB, 64 * kMiB}) {
        const CollectiveRequest request = Along(config, kind, {0, 1, 2}, bytes);
        isa::PodProgram program;
        const auto lowered = LowerCollective(config, request, program, {});
        ASSERT_TRUE(lowered.ok()) << lowered.status();
        const BodyRun run = RunBodies(config, program, *lowered);
        EXPECT_EQ(run.problem, "") << slice << " " << KindName(kind) << " " << bytes;
        EXPECT_NEAR(ToMicroseconds(run.time) / ToMicroseconds(lowered->info.expected), 1, 0.01)
            << slice << " " << KindName(kind) << " " << bytes;
        // A body does not grow with the spans.
        if (bytes > 4 * kMiB) {
          EXPECT_LE(run.instructions, 2 * instructions);
        }
        instructions = run.instructions;
      }
    }
  }
}

// The compiler maps rings of all-reduces and all-gathers onto neighbours; a reduce-scatter's ring
// has the order of its group ("has_reordering_map:0"). make_mesh orders 2x4 chips 0 1 2 3 7 6 5 4,
// in which 1 and 2 lie across: the busiest link carries two of the flows.
TEST(SumKernelTest, ARingInTheOrderOfTheGroupSharesLinks) {
  const configs::Config config = *configs::LoadConfig("v6e-2x4", {});
  const CollectiveRequest request =
      Request(CollectiveKind::kReduceScatter, {{0, 1, 2, 3, 7, 6, 5, 4}}, 100663296);
  const auto info = EstimateCollective(config, request, {});
  EXPECT_EQ(info->algorithm, "ring of 8 in the order of the group");
  const double neighbours = TimeAsCompiled(config, request, {{"", "hamiltonian-ring"}});
  EXPECT_NEAR(ToMicroseconds(info->expected) / neighbours, 2, 0.15);
  // In the order of a cycle of neighbours it is as fast as that, but for what its spans add.
  const CollectiveRequest cycle =
      Request(CollectiveKind::kReduceScatter, {{0, 2, 4, 6, 7, 5, 3, 1}}, 100663296);
  EXPECT_NEAR(TimeAsCompiled(config, cycle) / neighbours, 1, 0.1);
}

}  // namespace
}  // namespace tpusim::collectives
