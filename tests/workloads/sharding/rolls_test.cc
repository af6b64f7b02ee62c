// Concatenations that read an array round and round.
#include "workloads/sharding/rules/rolls.h"

#include "tests/workloads/sharding/rules_test_util.h"

namespace tpusim::sharding {
namespace {

using hlo::F32;
using hlo::Instruction;
using hlo::Opcode;
using hlo::TestModule;

class RollsTest : public testing::Test {
 protected:
  // Rows [start, limit) of x, an f32[16,8].
  Instruction* Rows(int64_t start, int64_t limit, int64_t columns = 8) {
    Instruction* slice = m_.Add(Opcode::kSlice, F32({limit - start, columns}), {x_});
    hlo::SetSlice(slice, {{start, limit, 1}, {0, columns, 1}});
    return slice;
  }
  Instruction* Join(std::vector<Instruction*> parts) {
    int64_t rows = 0;
    for (const Instruction* part : parts) rows += part->shape().dims[0];
    const int64_t columns = parts[0]->shape().dims[1];
    Instruction* joined = m_.Add(Opcode::kConcatenate, F32({rows, columns}), parts);
    hlo::SetDimensions(joined, {0});
    return joined;
  }
  // The root after the search: "roll 3" or the opcode.
  std::string Found(const Instruction* kept = nullptr) {
    FindRolls(m_.entry(), [&](const Instruction* i) { return i == kept; });
    const Instruction* root = m_.entry()->root();
    if (root->opcode() != Opcode::kCustomCall) return std::string(OpcodeName(root->opcode()));
    EXPECT_EQ(root->operands(), std::vector<Instruction*>{x_});
    EXPECT_EQ(GetRoll(*root).dim, 0);
    return "roll " + std::to_string(GetRoll(*root).first);
  }

  TestModule m_;
  Instruction* x_ = m_.Param(F32({16, 8}));
};

TEST_F(RollsTest, RollOfThreeRows) {
  Join({Rows(3, 16), Rows(0, 3)});
  EXPECT_EQ(Found(), "roll 3");
  EXPECT_EQ(m_.entry()->size(), 2);  // the parameter and the roll
  EXPECT_EQ(RuleText(m_.entry()->root()), "(a b)->(a b) a=16p b=8");
}

TEST_F(RollsTest, WrappedPadding) {
  // Two rows from the end, all, one from the beginning: 19 rows from 14 on.
  Join({Rows(14, 16), x_, Rows(0, 1)});
  EXPECT_EQ(Found(), "roll 14");
}

TEST_F(RollsTest, OnlyOnceRoundAndWithoutGaps) {
  Join({Rows(0, 3), Rows(3, 16)});  // not round: x itself
  EXPECT_EQ(Found(), "concatenate");
  Join({Rows(4, 16), Rows(0, 3)});  // round, 15 rows of it
  EXPECT_EQ(Found(), "roll 4");
  Join({Rows(3, 15), Rows(0, 3)});  // row 15 is missing
  EXPECT_EQ(Found(), "concatenate");
  Join({Rows(3, 16, 4), Rows(0, 3, 4)});  // half of the columns
  EXPECT_EQ(Found(), "concatenate");
}

TEST_F(RollsTest, WhatIsKnownElsewhereStays) {
  Instruction* joined = Join({Rows(3, 16), Rows(0, 3)});
  EXPECT_EQ(Found(joined), "concatenate");
}

}  // namespace
}  // namespace tpusim::sharding
