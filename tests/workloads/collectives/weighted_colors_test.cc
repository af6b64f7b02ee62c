// Colors of unequal parts: the linear program, what it balances, and how close to the
// bound that comes.
#include "workloads/collectives/weighted_colors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "tests/workloads/collectives/collective_interpreter.h"
#include "workloads/collectives/linear_program.h"

namespace tpusim::collectives {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;

TEST(LinearProgramTest, PartsForWhichServersEndTogether) {
  // 2 a = 3 (1 - a): a = 0.6.
  EXPECT_THAT(LeastSumOfMaxima({{2, 0}, {0, 3}}, 2),
              ElementsAre(DoubleNear(0.6, 1e-9), DoubleNear(0.4, 1e-9)));
  // Two groups of one server: the sum 2 a + 3 b with a + b = 1 is least without b.
  EXPECT_THAT(LeastSumOfMaxima({{2, 0}, {0, 3}}, 1),
              ElementsAre(DoubleNear(1, 1e-9), DoubleNear(0, 1e-9)));
  // A third way that is worse than a mixture of the others gets nothing.
  EXPECT_THAT(LeastSumOfMaxima({{2, 0}, {0, 2}, {1.5, 1.5}}, 2),
              ElementsAre(DoubleNear(0.5, 1e-9), DoubleNear(0.5, 1e-9), DoubleNear(0, 1e-9)));
}

Dimension Ring(int axis, int64_t n) {
  return {.shape = Dimension::Shape::kRing, .n = n, .rate = BytesPerSecond(1e9), .axis = axis};
}

// Shards that a color of weight 1 sends each way over its dimension in a phase.
double ShardsOver(const Plan& plan, size_t color, size_t phase) {
  double held = 1;
  for (size_t i = 0; i < phase; ++i) {
    held *= static_cast<double>(plan.dimensions[plan.orders[color][i]].n);
  }
  return held * static_cast<double>(plan.dimensions[plan.orders[color][phase]].n - 1) / 2;
}

double Share(const Plan& plan, size_t color) {
  return static_cast<double>(plan.weights[color]) / static_cast<double>(kWholeWeight);
}

std::vector<double> ShardsOfDimensions(const Plan& plan) {
  std::vector<double> shards(plan.dimensions.size());
  for (size_t color = 0; color < plan.orders.size(); ++color) {
    for (size_t phase = 0; phase < plan.dimensions.size(); ++phase) {
      shards[plan.orders[color][phase]] += Share(plan, color) * ShardsOver(plan, color, phase);
    }
  }
  return shards;
}

TEST(WeightedColorsTest, TwoSlotsOnAPlane) {
  // 4x8 in two slots. Of w that goes along x first 3/2 w shards cross a link of x, then
  // 7/2 * 4 w one of y; of u = 1 - w first 7/2 u one of y, then 3/2 * 8 u one of x. The second
  // slot takes max(14 w, 12 u), least for w = 6/13 = 30247 / 65536; the first is then
  // 7/2 u, and a larger w would gain 7/2 there and lose 14 here.
  const Plan plan = WeightedPlan(CollectiveKind::kAllGather, {Ring(0, 4), Ring(1, 8)}, /*slots=*/2);
  EXPECT_THAT(plan.orders, ElementsAre(ElementsAre(0, 1), ElementsAre(1, 0)));
  EXPECT_THAT(plan.slots, ElementsAre(ElementsAre(0, 1), ElementsAre(0, 1)));
  EXPECT_THAT(plan.weights, ElementsAre(30247, 35289));
}

TEST(WeightedColorsTest, EveryDimensionCarriesItsPart) {
  // Of 128 shards 127 come in, half of them each way, a third of them over each axis.
  const std::vector<Dimension> dimensions = {Ring(0, 4), Ring(1, 4), Ring(2, 8)};
  for (const CollectiveKind kind : {CollectiveKind::kAllGather, CollectiveKind::kAllReduce}) {
    const std::vector<Plan> plans = WeightedPlans(kind, dimensions, BytesPerSecond(0));
    ASSERT_EQ(plans.size(), 2);
    for (const Plan& plan : plans) {
      EXPECT_EQ(std::accumulate(plan.weights.begin(), plan.weights.end(), int64_t{0}),
                kWholeWeight);
      EXPECT_LE(plan.orders.size(), 3 * 6 + 1);
      for (const double shards : ShardsOfDimensions(plan)) EXPECT_NEAR(shards, 127.0 / 6, 0.05);
    }
  }
  // Equal parts in rotated orders: 1/3 each of x, y, z; y, z, x and z, x, y. Over y go
  // (6 + 3/2 + 48) / 3 shards, over x (3/2 + 48 + 12) / 3, over z (56 + 14 + 7/2) / 3.
  Plan equal;
  equal.dimensions = dimensions;
  equal.orders = {{0, 1, 2}, {1, 2, 0}, {2, 0, 1}};
  equal.weights = {kWholeWeight / 3, kWholeWeight / 3, kWholeWeight / 3};
  EXPECT_THAT(ShardsOfDimensions(equal),
              ElementsAre(DoubleNear(20.5, 0.01), DoubleNear(18.5, 0.01), DoubleNear(24.5, 0.01)));
}

TEST(WeightedColorsTest, NoneWhereEqualPartsDoAsWell) {
  const std::vector<Dimension> cube = {Ring(0, 4), Ring(1, 4), Ring(2, 4)};
  EXPECT_TRUE(WeightedPlans(CollectiveKind::kAllGather, cube, BytesPerSecond(0)).empty());
  // Nor where memory is the limit: two dimensions of 1e9 B/s, two transfers in and two out on
  // each, are 8e9 B/s; to add, 12e9.
  const std::vector<Dimension> plane = {Ring(0, 4), Ring(1, 8)};
  EXPECT_EQ(WeightedPlans(CollectiveKind::kAllGather, plane, BytesPerSecond(8e9)).size(), 2);
  EXPECT_EQ(WeightedPlans(CollectiveKind::kAllGather, plane, BytesPerSecond(7e9)).size(), 0);
  EXPECT_EQ(WeightedPlans(CollectiveKind::kReduceScatter, plane, BytesPerSecond(8e9)).size(), 0);
}

// 4 GiB with the fastest algorithm on slices whose axes all close.
TEST(WeightedColorsTest, NearTheBound) {
  for (const char* slice : {"v5p-4x4x8", "v5p-8x8x16", "v5p-4x8x8", "v4-4x4x12", "v5p-4x4x20",
                            "v7x-4x4x4", "v7x-4x4x8", "v7x-4x8x12"}) {
    const configs::Config config = *configs::LoadConfig(slice, {});
    for (const CollectiveKind kind :
         {CollectiveKind::kAllReduce, CollectiveKind::kAllGather, CollectiveKind::kReduceScatter}) {
      for (const std::vector<int>& axes :
           {std::vector{0, 1, 2, kCoreAxis}, {1, 2, kCoreAxis}, {0, 2}, {2, kCoreAxis}}) {
        CollectiveRequest request;
        request.kind = kind;
        request.groups = GroupsAlong(config.topology, axes);
        const auto n = static_cast<int64_t>(request.groups[0].size());
        request.operand_bytes =
            Bytes(kind == CollectiveKind::kAllGather ? CeilDiv(4 * kGiB, n) : 4 * kGiB);
        const auto info = EstimateCollective(config, request);
        ASSERT_TRUE(info.ok()) << info.status();
        EXPECT_LE(Ratio(info->expected, info->bound), 1.1)
            << slice << " " << info->kind << " " << info->algorithm;
      }
    }
  }
}

}  // namespace
}  // namespace tpusim::collectives
