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

TEST(OpcodeTest, TraitsAgreeWithEachOther) {
  const auto count = [](unsigned traits) { return __builtin_popcount(traits); };
  for (int n = 0; n < kNumOpcodes; ++n) {
    const unsigned traits = OpcodeTraitsOf(static_cast<Opcode>(n));
    const auto name = OpcodeName(static_cast<Opcode>(n));
    // Each is executed in one way, or in none that is known.
    EXPECT_LE(count(traits & (kFree | kOnScalarCore | kKernel | kElementwise | kControlFlow |
                              kCollective)),
              1)
        << name;
    EXPECT_LE(count(traits & (kAsyncStart | kAsyncDone)), 1) << name;
    if (traits & kWindows) {
      EXPECT_TRUE(traits & kKernel) << name;
    }
    if (traits & kCombines) {
      EXPECT_TRUE(traits & kCollective) << name;
    }
    if (traits & kControlFlow) {
      EXPECT_TRUE(traits & kOwnsCallees) << name;
    }
    if (traits & kIndexMap) {
      EXPECT_TRUE(traits & (kFree | kKernel)) << name;
    }
  }
}

TEST(OpcodeTest, VariadicOnesHaveALeastNumberOfOperands) {
  EXPECT_EQ(FewestOperands(Opcode::kTuple), 0);
  EXPECT_EQ(FewestOperands(Opcode::kConcatenate), 1);
  EXPECT_EQ(FewestOperands(Opcode::kReduce), 2);
  EXPECT_EQ(FewestOperands(Opcode::kScatter), 3);
  EXPECT_EQ(FewestOperands(Opcode::kDot), 2);
  EXPECT_EQ(OpcodeArity(Opcode::kScatter), -1);
}

}  // namespace
}  // namespace tpusim::hlo
