#include "workloads/hlo/ir/opcode.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace tpusim::hlo {
namespace {

TEST(OpcodeTest, TableHasAllOpcodesOfXlaAndNamesRoundTrip) {
  EXPECT_EQ(kNumOpcodes, 133);
  std::set<std::string> names;
  for (int i = 0; i < kNumOpcodes; ++i) {
    const Opcode opcode = static_cast<Opcode>(i);
    names.insert(std::string(OpcodeName(opcode)));
    EXPECT_EQ(OpcodeFromName(OpcodeName(opcode)), opcode);
  }
  EXPECT_EQ(names.size(), 133u);
  EXPECT_EQ(OpcodeName(Opcode::kAbs), "abs");
  EXPECT_EQ(OpcodeName(Opcode::kDynamicUpdateSlice), "dynamic-update-slice");
  EXPECT_EQ(OpcodeName(Opcode::kXor), "xor");
  EXPECT_EQ(OpcodeFromName("no-such-op"), std::nullopt);
}

TEST(OpcodeTest, Flags) {
  EXPECT_TRUE(IsElementwise(Opcode::kAdd));
  EXPECT_TRUE(IsElementwise(Opcode::kConvert));
  EXPECT_FALSE(IsElementwise(Opcode::kDot));
  EXPECT_FALSE(IsElementwise(Opcode::kCopy));
  EXPECT_TRUE(IsTranscendental(Opcode::kTanh));
  EXPECT_FALSE(IsTranscendental(Opcode::kMultiply));
  EXPECT_TRUE(IsCollective(Opcode::kAllReduce));
  EXPECT_TRUE(IsCollective(Opcode::kAllGatherStart));
  EXPECT_FALSE(IsCollective(Opcode::kAsyncStart));
  EXPECT_TRUE(IsAsyncStart(Opcode::kAsyncStart));
  EXPECT_TRUE(IsAsyncStart(Opcode::kCopyStart));
  EXPECT_TRUE(IsAsyncDone(Opcode::kCollectivePermuteDone));
  EXPECT_FALSE(IsAsyncDone(Opcode::kAllReduce));
}

TEST(OpcodeTest, Arities) {
  EXPECT_EQ(OpcodeArity(Opcode::kParameter), 0);
  EXPECT_EQ(OpcodeArity(Opcode::kTanh), 1);
  EXPECT_EQ(OpcodeArity(Opcode::kDot), 2);
  EXPECT_EQ(OpcodeArity(Opcode::kSelect), 3);
  EXPECT_EQ(OpcodeArity(Opcode::kScaledDot), 4);
  EXPECT_EQ(OpcodeArity(Opcode::kRaggedAllToAll), 6);
  EXPECT_EQ(OpcodeArity(Opcode::kTuple), -1);
}

TEST(OpcodeTest, OldCompareNames) {
  EXPECT_EQ(OldCompareDirection("less-than"), "LT");
  EXPECT_EQ(OldCompareDirection("greater-than-or-equal-to"), "GE");
  EXPECT_EQ(OldCompareDirection("compare"), std::nullopt);
}

}  // namespace
}  // namespace tpusim::hlo
