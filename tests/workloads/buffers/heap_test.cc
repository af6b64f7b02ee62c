#include "workloads/buffers/heap.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

#include "configs/limit.h"

namespace tpusim::buffers {
namespace {

void ExpectNoOverlap(const std::vector<HeapBuffer>& buffers, const Heap& heap) {
  for (size_t a = 0; a < buffers.size(); ++a) {
    EXPECT_LE(heap.offsets[a] + buffers[a].bytes, heap.height);
    for (size_t b = 0; b < a; ++b) {
      const bool together = buffers[a].begin < buffers[b].end && buffers[b].begin < buffers[a].end;
      const bool apart = heap.offsets[a] + buffers[a].bytes <= heap.offsets[b] ||
                         heap.offsets[b] + buffers[b].bytes <= heap.offsets[a];
      EXPECT_TRUE(!together || apart) << a << " " << b;
    }
  }
}

TEST(PackHeap, WhatDoesNotLiveTogetherSharesItsPlace) {
  const std::vector<HeapBuffer> buffers = {{0, 2, Bytes(100)}, {2, 4, Bytes(80)}};
  const Heap heap = PackHeap(buffers);
  EXPECT_EQ(heap.height, Bytes(100));
  EXPECT_EQ(heap.offsets, (std::vector<Bytes>{Bytes(0), Bytes(0)}));
}

// 60 and 30 are below 50, which outlives them: the hole that they leave, of 60, takes 45
// and later 60 again, and the smallest hole that has room is taken.
TEST(PackHeap, HolesAreFilled) {
  const std::vector<HeapBuffer> buffers = {
      {0, 2, Bytes(60)},  // at 0
      {0, 9, Bytes(50)},  // on top, at 60
      {3, 5, Bytes(45)},  // in the hole
      {0, 9, Bytes(10)},  // on top, at 110
  };
  const Heap heap = PackHeap(buffers);
  EXPECT_EQ(heap.offsets, (std::vector<Bytes>{Bytes(0), Bytes(60), Bytes(0), Bytes(110)}));
  EXPECT_EQ(heap.height, Bytes(120));
}

// 50 and 40 live together, then 40 and 30, then 30 and 60: never more than 90 are live. From
// the largest on: 60 at 0, 50 at 0, 40 on 50; 30 lives with 60 and with the 40 at 50 to 90,
// so it comes on top of them, at 90.
TEST(PackHeap, HolesCount) {
  const std::vector<HeapBuffer> buffers = {
      {0, 2, Bytes(50)}, {1, 4, Bytes(40)}, {3, 6, Bytes(30)}, {5, 7, Bytes(60)}};
  const Heap heap = PackHeap(buffers);
  ExpectNoOverlap(buffers, heap);
  EXPECT_EQ(heap.offsets[2], Bytes(90));
  EXPECT_EQ(heap.height, Bytes(120));
}

TEST(PackHeap, NothingOverlapsWhateverTheEffort) {
  std::mt19937 random(7);
  std::vector<HeapBuffer> buffers;
  for (int n = 0; n < 400; ++n) {
    const int64_t begin = static_cast<int64_t>(random() % 1000);
    buffers.push_back({begin, begin + 1 + static_cast<int64_t>(random() % 60),
                       Bytes(1 + static_cast<int64_t>(random() % 1000))});
  }
  buffers.push_back({5, 5, Bytes(1000)});  // lives at no moment
  const Heap thorough = PackHeap(buffers);
  const LimitScope scope({{"buffers.heap_pairs", 200}});
  const Heap quick = PackHeap(buffers);
  buffers.pop_back();
  ExpectNoOverlap(buffers, thorough);
  ExpectNoOverlap(buffers, quick);
  EXPECT_LE(thorough.height, quick.height);
}

constexpr Bytes kPage{16384};

// The second of three buffers ends first; the fourth and fifth fit into its hole, one after the
// other, and the sixth only above all.
TEST(PlaceInHeap, TakesHolesAsTheyCome) {
  const std::vector<HeapBuffer> buffers = {{0, 9, 2 * kPage}, {1, 4, 3 * kPage}, {2, 9, kPage},
                                           {5, 9, 2 * kPage}, {6, 9, kPage},     {7, 9, 2 * kPage}};
  const Heap heap = PlaceInHeap(buffers, kPage);
  EXPECT_EQ(heap.offsets,
            (std::vector<Bytes>{Bytes(0), 2 * kPage, 5 * kPage, 2 * kPage, 4 * kPage, 6 * kPage}));
  EXPECT_EQ(heap.height, 8 * kPage);
}

// A hole of three and one of two pages: the one of two is taken.
TEST(PlaceInHeap, TakesTheSmallestHoleThatHasRoom) {
  const std::vector<HeapBuffer> buffers = {
      {0, 5, 3 * kPage}, {1, 9, kPage}, {2, 5, 2 * kPage}, {3, 9, kPage}, {6, 9, 2 * kPage}};
  EXPECT_EQ(PlaceInHeap(buffers, kPage).offsets[4], 4 * kPage);
}

// Neighbours that end are one hole, and one at the end of the heap only needs to grow.
TEST(PlaceInHeap, HolesJoinAndTheLastOneGrows) {
  const std::vector<HeapBuffer> buffers = {
      {0, 9, kPage}, {1, 5, 2 * kPage}, {1, 4, 2 * kPage}, {6, 9, 5 * kPage}};
  const Heap heap = PlaceInHeap(buffers, kPage);
  EXPECT_EQ(heap.offsets[3], kPage);
  EXPECT_EQ(heap.height, 6 * kPage);
}

// Another packing would move these: two large ones that never meet, with a small one that meets
// both.
TEST(PlaceInHeap, NoneMovesForWhatComesLater) {
  const std::vector<HeapBuffer> buffers = {{0, 3, 4 * kPage}, {1, 6, kPage}, {4, 6, 5 * kPage}};
  EXPECT_EQ(PlaceInHeap(buffers, kPage).height, 10 * kPage);
  EXPECT_EQ(PackHeap(buffers).height, 6 * kPage);
}

TEST(PlaceInHeap, BeginsAtPages) {
  const std::vector<HeapBuffer> buffers = {{0, 3, Bytes(4)}, {1, 3, Bytes(10)}};
  const Heap heap = PlaceInHeap(buffers, kPage);
  EXPECT_EQ(heap.offsets[1], kPage);
  EXPECT_EQ(heap.height, kPage + Bytes(10));
}

TEST(PlaceInHeap, NothingOverlaps) {
  std::mt19937 random(11);
  std::vector<HeapBuffer> buffers;
  for (int n = 0; n < 400; ++n) {
    const int64_t begin = static_cast<int64_t>(random() % 1000);
    buffers.push_back({begin, begin + 1 + static_cast<int64_t>(random() % 60),
                       Bytes(1 + static_cast<int64_t>(random() % 100000))});
  }
  ExpectNoOverlap(buffers, PlaceInHeap(buffers, kPage));
}

}  // namespace
}  // namespace tpusim::buffers
