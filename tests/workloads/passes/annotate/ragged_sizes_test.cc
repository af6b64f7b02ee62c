// Statements about sizes that are data: their syntax, and what they mean on a device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs/config.h"
#include "tests/workloads/hlo/hlo_test_util.h"
#include "tests/workloads/passes/fake_costs.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/ragged.h"
#include "workloads/hlo/rules/cost.h"
#include "workloads/passes/annotate/annotate.h"
#include "workloads/passes/pipeline/statements.h"
#include "workloads/target/target.h"

namespace tpusim::passes {
namespace {

using hlo::Instruction;
using hlo::MakeShape;
using hlo::Opcode;
using hlo::PrimitiveType;
using hlo::S32;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(RaggedSizesTest, Syntax) {
  const auto rows = ParseRaggedOverride("ragged-dot.3=128,0,64,64");
  ASSERT_TRUE(rows);
  EXPECT_EQ(rows->name, "ragged-dot.3");
  EXPECT_THAT(rows->sizes, ElementsAre(128, 0, 64, 64));
  EXPECT_FALSE(rows->shares);
  const auto shares = ParseRaggedOverride("*=0.5,.25,0.25,0");
  ASSERT_TRUE(shares);
  EXPECT_TRUE(shares->shares);
  EXPECT_THAT(shares->sizes, ElementsAre(0.5, 0.25, 0.25, 0));
  EXPECT_TRUE(ParseRaggedOverride("a=b=uniform")->sizes.empty());
  for (const char* wrong : {"", "=1", "a=", "a=1,", "a=,1", "a=-1", "a=1e3", "a=x", "a", "a=.",
                            "a=1.2.3", "a=0.9,0.2", "a=99999999999999999999"}) {
    EXPECT_FALSE(ParseRaggedOverride(wrong)) << wrong;
  }
}

// Returns the records of a module of so many partitions, with statements as --ragged has them.
absl::StatusOr<std::vector<Record>> Said(hlo::TestModule& m, int64_t partitions,
                                         const std::vector<std::string>& texts = {},
                                         const Routing& routing = {}) {
  const configs::Config config = configs::LoadConfig("v5e-2x4", {}).value();
  const target::Target target(config);
  Statements stated;
  stated.partitions = partitions;
  for (const std::string& text : texts) stated.ragged.push_back(*ParseRaggedOverride(text));
  std::vector<Record> said;
  stated.routing = routing;
  FakeCosts costs;
  PassContext context(target, costs);
  context.stated = &stated;
  context.records = Records(nullptr, &said);
  const absl::StatusOr<bool> changed = StateRaggedSizes(m.module(), context);
  if (!changed.ok()) return changed.status();
  return said;
}

// 256 rows in `groups` groups.
Instruction* AddRaggedDot(hlo::TestModule& m, int64_t groups) {
  Instruction* lhs = m.Param(MakeShape(PrimitiveType::kBf16, {256, 64}));
  Instruction* rhs = m.Param(MakeShape(PrimitiveType::kBf16, {groups, 64, 32}));
  Instruction* sizes = m.Param(S32({groups}));
  Instruction* dot =
      m.Add(Opcode::kRaggedDot, MakeShape(PrimitiveType::kBf16, {256, 32}), {lhs, rhs, sizes});
  auto* ragged = dot->mutable_attrs().mutable_ragged_dot_dimension_numbers();
  ragged->mutable_dot_dimension_numbers()->add_lhs_contracting_dimensions(1);
  ragged->mutable_dot_dimension_numbers()->add_rhs_contracting_dimensions(1);
  ragged->add_lhs_ragged_dimensions(0);
  ragged->add_rhs_group_dimensions(0);
  return dot;
}

std::vector<int64_t> Stated(int64_t groups, const std::string& sizes) {
  hlo::TestModule m;
  Instruction* dot = AddRaggedDot(m, groups);
  const auto said = Said(m, 8, {"*=" + sizes});
  EXPECT_TRUE(said.ok()) << said.status();
  return hlo::RaggedSizes(*dot).value_or(std::vector<int64_t>{-1});
}

TEST(RaggedSizesTest, OnADevice) {
  EXPECT_THAT(Stated(4, "128,0,64,64"), ElementsAre(128, 0, 64, 64));
  // Fewer rows than there are: the others belong to no group.
  EXPECT_THAT(Stated(4, "1,2,3,4"), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(Stated(4, "0.5,0.25,0.25,0.0"), ElementsAre(128, 64, 64, 0));
  // 85.33, 170.67 and 256: ends are rounded, so that the sum is right.
  EXPECT_THAT(Stated(3, "0.3333333,0.3333333,0.3333334"), ElementsAre(85, 86, 85));
  EXPECT_THAT(Stated(4, "uniform"), ElementsAre(-1));
}

TEST(RaggedSizesTest, OfTheBusiestDevice) {
  // Eight groups over two devices of four. The second multiplies the rows before
  // its groups as well, as its first group's: 10 + 20 + 30 + 40 + 50 there.
  EXPECT_THAT(Stated(4, "10,20,30,40,50,60,20,26"), ElementsAre(150, 60, 20, 26));
  // Twice as many rows as a device has: blocks of 256 rows. Both are full; the
  // first has 200 + 56, the second the other 44, 12 and 200.
  EXPECT_THAT(Stated(4, "200,100,12,200"), ElementsAre(200, 56, 0, 0));
  // The second has 244 rows only.
  EXPECT_THAT(Stated(4, "0,0,0,500"), ElementsAre(0, 0, 0, 256));
}

TEST(RaggedSizesTest, Notes) {
  hlo::TestModule m;
  AddRaggedDot(m, 4);
  const auto none = Said(m, 8);
  ASSERT_TRUE(none.ok());
  EXPECT_THAT(TextsOf(*none, Action::kAssumed),
              ElementsAre(HasSubstr("equally large: their sizes are data (--ragged ")));
  EXPECT_EQ(none->at(0).reason->id, "state-ragged-sizes.equal");
  const auto other = Said(m, 8, {"dot.99=1,2"});
  ASSERT_TRUE(other.ok());
  EXPECT_THAT(TextsOf(*other, Action::kWarned),
              ElementsAre(HasSubstr("--ragged dot.99 has no effect: its ragged")));
  const auto wrong = Said(m, 8, {"*=1,2,3"});
  ASSERT_FALSE(wrong.ok());
  EXPECT_THAT(std::string(wrong.status().message()), HasSubstr("3 sizes for "));
  hlo::TestModule plain;
  EXPECT_THAT(TextsOf(*Said(plain, 8, {"*=1"}), Action::kWarned),
              ElementsAre("--ragged * has no effect: the program has no ragged operation"));
}

// A device receives what it sends, which cannot be more than its result holds.
TEST(RaggedSizesTest, AnExchangeSendsNoMoreThanItsResultHolds) {
  const auto exchange = [](hlo::TestModule& m, int64_t rows, int64_t room) {
    hlo::Instruction* sizes = m.Param(hlo::S32({4}));
    return m.Add(
        hlo::Opcode::kRaggedAllToAll, hlo::F32({room, 16}),
        {m.Param(hlo::F32({rows, 16})), m.Param(hlo::F32({room, 16})), sizes, sizes, sizes, sizes});
  };
  hlo::TestModule small, large;
  const hlo::Instruction* capped = exchange(small, 128, 32);
  EXPECT_EQ(hlo::RowsSent(*capped), 32);
  // 32 rows of 64 bytes and four tables of 16 bytes are read, 32 rows written.
  const hlo::Cost cost = hlo::CostOf(*capped).value();
  EXPECT_EQ(cost.bytes_read, Bytes(32 * 64 + 4 * 16));
  EXPECT_EQ(cost.bytes_written, Bytes(32 * 64));
  EXPECT_THAT(TextsOf(*Said(small, 4), Action::kAssumed),
              ElementsAre(HasSubstr("sends 32 of its 128 rows, as many as its result holds"),
                          HasSubstr("equally large")));
  const hlo::Instruction* whole = exchange(large, 128, 512);
  EXPECT_EQ(hlo::RowsSent(*whole), 128);
  EXPECT_EQ(Said(large, 4)->size(), 1U);
  // What is stated counts.
  ASSERT_TRUE(Said(small, 4, {"*=64,16,0,0"}).ok());
  EXPECT_EQ(hlo::RowsSent(*capped), 80);
  // And goes on counting where nothing is stated once more, until another thing is.
  EXPECT_THAT(TextsOf(*Said(small, 4), Action::kAssumed),
              ElementsAre(HasSubstr("sends 64, 16, 0, 0 rows to the members of its group")));
  ASSERT_TRUE(Said(small, 4, {"*=uniform"}).ok());
  EXPECT_EQ(hlo::RowsSent(*capped), 32);
}

// No exchange brings the rows: each device has all of them, and multiplies those of its experts.
TEST(RaggedSizesTest, RoutingOfADotWhoseRowsAreHere) {
  hlo::TestModule m;
  Instruction* dot = AddRaggedDot(m, 4);
  Routing routing;
  routing.layers = {{1, 1, 1, 1, 4, 4, 2, 2}};  // the experts of two devices
  ASSERT_TRUE(Said(m, 2, {}, routing).ok());
  EXPECT_THAT(hlo::RaggedSizes(*dot), ::testing::Optional(ElementsAre(64, 64, 32, 32)));
  hlo::TestModule two;
  AddRaggedDot(two, 4);
  AddRaggedDot(two, 4);
  routing.layers = {{1, 1, 1, 1}, {1, 1, 1, 1}, {1, 1, 1, 1}};
  const auto wrong = Said(two, 2, {}, routing);
  ASSERT_FALSE(wrong.ok());
  EXPECT_THAT(std::string(wrong.status().message()), HasSubstr("3 layers, expected are 2"));
}

TEST(RaggedSizesTest, RoutingOfWhatIsStatedHasNoEffect) {
  hlo::TestModule m;
  AddRaggedDot(m, 4);
  Routing routing;
  routing.text = "zipf:1";
  routing.exponent = 1;
  const auto said = Said(m, 2, {"*=64,64,64,64"}, routing);
  ASSERT_TRUE(said.ok());
  EXPECT_THAT(TextsOf(*said, Action::kWarned),
              ElementsAre("--routing zipf:1 has no effect: the program has no ragged operation "
                          "without sizes"));
}

}  // namespace
}  // namespace tpusim::passes
