// Automorphisms of a slice: their number, and where they map chips.
#include "sim/symmetry/turns.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tpusim::sim {
namespace {

using configs::Direction;
using configs::Topology;

TEST(Turns, ATorusOfEqualAxesHasThoseOfTheCube) {
  EXPECT_EQ(TurnsOf(Topology({4, 4, 4}, {true, true, true}, 1), 5, 5).size(), 48);
  EXPECT_EQ(TurnsOf(Topology({4, 4, 4}, {true, true, true}, 1), 5, 17).size(), 48);
  EXPECT_EQ(TurnsOf(Topology({16, 16, 1}, {true, true, false}, 1), 0, 0).size(), 8);
  // x and y can be turned round, but not exchanged.
  EXPECT_EQ(TurnsOf(Topology({8, 16, 1}, {true, true, false}, 1), 0, 0).size(), 4);
}

TEST(Turns, OnALineOnlyTheMirrorImageOfTheEnds) {
  const Topology line({4, 1, 1}, {false, false, false}, 1);
  EXPECT_EQ(TurnsOf(line, 0, 0).size(), 1);
  EXPECT_EQ(TurnsOf(line, 0, 1).size(), 0);
  const std::vector<Turn> mirrors = TurnsOf(line, 0, 3);
  ASSERT_EQ(mirrors.size(), 1);
  EXPECT_EQ(mirrors[0].chips, (std::vector<int64_t>{3, 2, 1, 0}));
  EXPECT_EQ(mirrors[0].Of({0, Direction::kXPlus}), (configs::Link{3, Direction::kXMinus}));
}

TEST(Turns, ExchangesOfAxesExchangeDirections) {
  // (x, y) -> (y, x) is among those that keep chip 0 of a mesh of 3 x 3.
  const std::vector<Turn> turns = TurnsOf(Topology({3, 3, 1}, {false, false, false}, 1), 0, 0);
  ASSERT_EQ(turns.size(), 2);
  EXPECT_EQ(turns[1].chips, (std::vector<int64_t>{0, 3, 6, 1, 4, 7, 2, 5, 8}));
  EXPECT_EQ(turns[1].directions[static_cast<int>(Direction::kXPlus)], Direction::kYPlus);
}

TEST(Turns, ATwistMustBeKept) {
  const std::array<int64_t, 3> shape = {2, 2, 4};
  const Topology twisted(shape, {true, true, true}, 1, configs::TwistOf(shape));
  for (const Turn& turn : TurnsOf(twisted, 0, 3)) {
    EXPECT_EQ(turn.chips[0], 3);
    for (const configs::Link& link : twisted.AllLinks()) {
      const configs::Link image = turn.Of(link);
      EXPECT_EQ(twisted.Neighbour(image.chip, image.direction),
                turn.chips[twisted.Neighbour(link.chip, link.direction)]);
    }
  }
  EXPECT_FALSE(TurnsOf(twisted, 0, 3).empty());
}

}  // namespace
}  // namespace tpusim::sim
