// Refits, carried out on numbers.
#include "workloads/spmd/refit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs/limit.h"
#include "configs/units.h"
#include "tests/workloads/spmd/spmd_test_util.h"

namespace tpusim::spmd {
namespace {

using sharding::Axes;
using sharding::Mesh;

constexpr int64_t kPadding = -1;

// Block of every position: element e is the number e.
std::vector<std::vector<int64_t>> Blocks(const Mesh& mesh, const Axes& axes, int64_t size) {
  const int64_t block = CeilDiv(size, Product(axes));
  std::vector<std::vector<int64_t>> blocks;
  for (int64_t p = 0; p < mesh.size(); ++p) {
    std::vector<int64_t> elements;
    for (int64_t i = 0; i < block; ++i) {
      const int64_t e = ShardIndex(mesh, axes, p) * block + i;
      elements.push_back(e < size ? e : kPadding);
    }
    blocks.push_back(std::move(elements));
  }
  return blocks;
}

// Returns what devices have after all rounds; elements that no round gives are padding.
std::vector<std::vector<int64_t>> Done(const std::vector<std::vector<int64_t>>& before,
                                       const Refit& refit) {
  std::vector<std::vector<int64_t>> after(before.size(),
                                          std::vector<int64_t>(refit.block_after, kPadding));
  for (size_t r = 0; r < refit.rounds.size(); ++r) {
    const RefitRound& round = refit.rounds[r];
    std::vector<std::pair<int64_t, int64_t>> pairs = round.pairs;
    for (size_t p = 0; p < before.size() && r == 0; ++p) pairs.emplace_back(p, p);
    for (const auto& [from, to] : pairs) {
      for (int64_t i = round.low[to]; i < round.high[to]; ++i) {
        const int64_t in_piece = i - round.place[to];
        EXPECT_GE(in_piece, 0);
        EXPECT_LT(in_piece, round.width);
        after[to][i] = before[from][round.start[from] + in_piece];
      }
    }
  }
  return after;
}

TEST(Refit, GivesEveryDeviceWhatItWants) {
  const Mesh mesh = MeshOf({4, 2});
  const Axes x = {{0, 1, 4}}, y = {{1, 1, 2}}, half = {{0, 1, 2}};
  const Axes xy = {x[0], y[0]}, yx = {y[0], x[0]};
  int64_t found = 0;
  for (const Axes& before : {x, y, xy, yx, half}) {
    for (const Axes& after : {x, y, xy, yx, half}) {
      for (int64_t size = 1; size <= 33; ++size) {
        const auto refit = RefitOf(mesh, before, after, size);
        if (!refit) continue;
        ++found;
        EXPECT_EQ(Done(Blocks(mesh, before, size), *refit), Blocks(mesh, after, size))
            << size << " from " << ToString(before, mesh) << " to " << ToString(after, mesh);
      }
    }
  }
  EXPECT_GT(found, 500);
}

TEST(Refit, OnLargeMeshes) {
  const Mesh mesh = MeshOf({2048, 2});
  const Axes x = {{0, 1, 2048}}, xy = {{0, 1, 2048}, {1, 1, 2}};
  const auto refit = RefitOf(mesh, xy, x, 3 * 2048);
  ASSERT_TRUE(refit);
  EXPECT_EQ(Done(Blocks(mesh, xy, 3 * 2048), *refit), Blocks(mesh, x, 3 * 2048));
  const LimitScope scope({{"spmd.refit_pairs", 1000}});
  EXPECT_FALSE(RefitOf(mesh, xy, x, 3 * 2048));
}

// Axes that do not split the dimension make copies of the devices that change its split: each copy
// does what these do alone, wherever the axes are in the mesh.
TEST(Refit, GroupsOfDevicesAreAlike) {
  const Axes x = {{0, 1, 4}}, xy = {{0, 1, 4}, {1, 1, 2}};
  const auto alone = RefitOf(MeshOf({4, 2}), xy, x, 12);
  const auto repeated = RefitOf(MeshOf({4, 2, 3}), xy, x, 12);
  ASSERT_TRUE(alone && repeated);
  EXPECT_EQ(repeated->element_links, 3 * alone->element_links);
  ASSERT_EQ(repeated->rounds.size(), alone->rounds.size());
  for (size_t r = 0; r < alone->rounds.size(); ++r) {
    const RefitRound &one = alone->rounds[r], &all = repeated->rounds[r];
    EXPECT_EQ(all.width, one.width);
    ASSERT_EQ(all.pairs.size(), 3 * one.pairs.size());
    for (const auto& [from, to] : one.pairs) {
      for (int64_t z = 0; z < 3; ++z) {
        EXPECT_THAT(all.pairs, ::testing::Contains(std::pair(3 * from + z, 3 * to + z)));
      }
    }
    for (int64_t p = 0; p < 24; ++p) {
      EXPECT_EQ(all.start[p], one.start[p / 3]);
      EXPECT_EQ(all.low[p], one.low[p / 3]);
      EXPECT_EQ(all.high[p], one.high[p / 3]);
      EXPECT_EQ(all.place[p], one.place[p / 3]);
    }
  }
}

TEST(Refit, OneSenderAndOneReceiverPerRound) {
  // 12 elements: halves over Y become [0,2) [2,4) ... over Y and X. Only the device with
  // [6,8), the last of the first four, lacks it.
  const Mesh mesh = MeshOf({4, 2});
  const auto refit = RefitOf(mesh, {{1, 1, 2}}, {{1, 1, 2}, {0, 1, 4}}, 12);
  ASSERT_TRUE(refit);
  ASSERT_EQ(refit->rounds.size(), 2u);
  // From the nearest device of the other half: x = 3, y = 1, one link away.
  EXPECT_EQ(refit->rounds[1].pairs, (std::vector<std::pair<int64_t, int64_t>>{{7, 6}}));
  EXPECT_EQ(refit->rounds[1].width, 2);
  EXPECT_EQ(refit->element_links, 2);
}

// The data along the other half of x may be another part of another dimension.
TEST(Refit, DevicesThatDifferInTheRestOfAnAxisDoNotSend) {
  const Mesh mesh = MeshOf({4, 2});
  const sharding::AxisRef major_half = {0, 1, 2}, minor_half = {0, 2, 2}, y = {1, 1, 2};
  const auto refit = RefitOf(mesh, {y, major_half}, {y}, 2);
  ASSERT_TRUE(refit);
  int64_t pairs = 0;
  for (const RefitRound& round : refit->rounds) {
    for (const auto& [from, to] : round.pairs) {
      EXPECT_EQ(sharding::ShardIndex(mesh, {minor_half}, from),
                sharding::ShardIndex(mesh, {minor_half}, to));
      ++pairs;
    }
  }
  // The second element is with y = 0 and the second half of x; the first with the first half.
  EXPECT_EQ(pairs, 6);
}

}  // namespace
}  // namespace tpusim::spmd
