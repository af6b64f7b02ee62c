// Names of operations, tokens and flags in the iterations of a loop.
#include "models/isa/iterations.h"

#include <gtest/gtest.h>

namespace tpusim::isa {
namespace {

// Operations 10 .. 14, 15 .. 19, and so on, and 40 .. 41, 44 .. 45 of what they call. Tokens from
// 3, and in the first one a token of before; all share their flags.
Iterations Layers() {
  return Iterations(4, Iterations::Ranges{{{{10, 10, 5, 5}, {40, 40, 2, 4}}, {{2, 3, 1, 1}}, {}}});
}

TEST(Iterations, NamesAreOfAnIteration) {
  const Iterations layers = Layers();
  const Iterations::Name name = layers.Of(NameKind::kOp, 22);
  EXPECT_EQ(name.which, 12);
  EXPECT_EQ(name.iteration, 2);
  EXPECT_EQ(layers.In(NameKind::kOp, {12, 3}), 27);
  EXPECT_EQ(layers.Of(NameKind::kOp, 45).which, 41);
  EXPECT_EQ(layers.Of(NameKind::kOp, 45).iteration, 1);
  EXPECT_EQ(layers.Of(NameKind::kToken, 6).iteration, 3);
}

TEST(Iterations, OtherNamesAreOfNone) {
  const Iterations layers = Layers();
  for (const int32_t op : {-1, 9, 30, 42, 56}) {
    EXPECT_EQ(layers.Of(NameKind::kOp, op).which, op);
    EXPECT_EQ(layers.Of(NameKind::kOp, op).iteration, -1);
    EXPECT_EQ(layers.Later(op, 1), op);
  }
  EXPECT_EQ(layers.Of(NameKind::kFlag, 7).iteration, -1);
  EXPECT_EQ(layers.In(NameKind::kFlag, {7, -1}), 7);
}

TEST(Iterations, LaterOnesHaveLargerNames) {
  const Iterations layers = Layers();
  EXPECT_EQ(layers.Later(11, 3), 26);
  EXPECT_DEATH(layers.Later(11, 4), "an iteration that the loop does not have");
  const Iteration third{&layers, 2};
  EXPECT_EQ(third.Op(11), 21);
  EXPECT_EQ(third.Op(40), 48);
  EXPECT_EQ(third.Token(3), 5);
  EXPECT_EQ(third.Token(2), 4);
  EXPECT_EQ(third.Flag(7), 7);
  EXPECT_EQ(third.Flag(-1), -1);
  EXPECT_EQ(Iteration{}.Op(11), 11);
}

}  // namespace
}  // namespace tpusim::isa
