// Data that a device receives when a window moves over a split dimension.
#include <gtest/gtest.h>

#include "workloads/spmd/emit/window.h"

namespace tpusim::spmd {
namespace {

const sharding::Axes kFour = {{0, 1, 4}};

// 32 elements over four devices: blocks of 8.
TEST(WindowTest, OwnBlockNeedsNobody) {
  EXPECT_EQ(ReceivedElements({0, kFour, 32, 8, 8, 0, 8}), 0);
}

TEST(WindowTest, HalosOfBothSides) {
  // [8 i - 1, 8 i + 10): one element from before, two from behind.
  EXPECT_EQ(ReceivedElements({0, kFour, 32, 8, 8, -1, 11}), 3);
}

TEST(WindowTest, WhatDoesNotExistIsNotSent) {
  // The first quarter of everybody's block, from 32 on: nothing is there.
  EXPECT_EQ(ReceivedElements({0, kFour, 32, 8, 8, 32, 4}), 0);
}

TEST(WindowTest, HalosOverSeveralBlocks) {
  // Ten before: a whole block and two more.
  EXPECT_EQ(ReceivedElements({0, kFour, 32, 8, 8, -10, 18}), 10);
}

TEST(WindowTest, ShrinkingBlocksDrift) {
  // The first half in blocks of 4: device i wants [4 i, 4 i + 4), which devices 0, 0, 1, 1
  // have: half a block from the neighbour, and half a block from two away.
  EXPECT_EQ(ReceivedElements({0, kFour, 32, 8, 4, 0, 4}), 8);
  // The second half: devices 2, 2, 3 and 3.
  EXPECT_EQ(ReceivedElements({0, kFour, 32, 8, 4, 16, 4}), 8);
}

TEST(WindowTest, UnevenBlocksEndWhereTheArrayEnds) {
  // 30 elements: the last block has 6. Two behind each, but none behind the last.
  EXPECT_EQ(ReceivedElements({0, kFour, 30, 8, 8, 0, 10}), 2);
}

TEST(WindowTest, CyclicWindowsHaveNoEnds) {
  // Three rows on: the last device's come from the first one.
  Window window{0, kFour, 32, 8, 8, 3, 8};
  window.cyclic = true;
  EXPECT_EQ(ReceivedElements(window), 3);
  // 32 on is where it began; 8 on is the whole block of the next one.
  window.offset = 32;
  EXPECT_EQ(ReceivedElements(window), 0);
  window.offset = 8;
  EXPECT_EQ(ReceivedElements(window), 8);
}

TEST(SpatialWindowTest, StrideAndPadding) {
  // 16 elements, window 3, stride 2, padding 1 before: 8 positions, 2 per device,
  // which cover [4 i - 1, 4 i + 4).
  hlo::WindowDim window{3, 2, 1, 0};
  const auto spatial = SpatialWindowOf(window, 0, 16, 8, kFour);
  ASSERT_TRUE(spatial);
  EXPECT_EQ(spatial->fetched.step, 4);
  EXPECT_EQ(spatial->fetched.offset, -1);
  EXPECT_EQ(spatial->fetched.width, 5);
  EXPECT_EQ(spatial->local.padding_low, 0);
  EXPECT_EQ(ReceivedElements(spatial->fetched), 1);
}

TEST(SpatialWindowTest, HolesAtTheSamePlacesOfEveryShard) {
  // 8 elements with one hole between two: 15 places, padding 1 and 2 makes 18; window 3:
  // 16 positions, 4 per device, which cover places [4 i - 1, 4 i + 5): elements
  // 2 i, 2 i + 1, 2 i + 2 at 1, 3, 5 of these six places.
  hlo::WindowDim window{3, 1, 1, 2};
  window.base_dilation = 2;
  const auto spatial = SpatialWindowOf(window, 0, 8, 16, kFour);
  ASSERT_TRUE(spatial);
  EXPECT_EQ(spatial->fetched.step, 2);
  EXPECT_EQ(spatial->fetched.offset, 0);
  EXPECT_EQ(spatial->fetched.width, 3);
  EXPECT_EQ(spatial->local.padding_low, 1);
  EXPECT_EQ(spatial->local.padding_high, 0);
  // 5 positions per device and a hole at every second place do not go together.
  EXPECT_FALSE(SpatialWindowOf(window, 0, 9, 20, kFour));
}

}  // namespace
}  // namespace tpusim::spmd
