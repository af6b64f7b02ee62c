#include "workloads/sharding/decisions.h"

#include <set>

#include "sharding_testing.h"

namespace tpusim::sharding {
namespace {

using hlo::F32;
using hlo::Instruction;
using hlo::Opcode;
using ::testing::ElementsAre;

void Name(Instruction* argument, const std::string& name) {
  argument->mutable_attrs().mutable_metadata()->set_op_name(name);
}

// Two layers h = (h w0) w1, of [8,16] with [16,32] and [32,16].
Decisions DecisionsOf(const hlo::Module& module) {
  const auto normalised = Normalise(module.Clone(), 8);
  EXPECT_TRUE(normalised.ok()) << normalised.status();
  const auto decisions = FindDecisions(*normalised);
  EXPECT_TRUE(decisions.ok()) << decisions.status();
  return decisions.ok() ? *decisions : Decisions();
}

Decisions OfTwoLayers(const std::string& second = "1") {
  ShardedTestModule m;
  Instruction* h = m.Argument(F32({8, 16}), "");
  Name(h, "x");
  for (const std::string& layer : {std::string("0"), second}) {
    Instruction* up = m.Argument(F32({16, 32}), "");
    Instruction* down = m.Argument(F32({32, 16}), "");
    Name(up, "params[" + layer + "]['up']");
    Name(down, "params[" + layer + "]['down']");
    h = m.Dot(m.Dot(h, up, {8, 32}), down, {8, 16});
  }
  return DecisionsOf(m.module());
}

TEST(Decisions, DimensionsOfOneLoopAreOne) {
  const std::vector<Decision> decisions = OfTwoLayers().all;
  ASSERT_EQ(decisions.size(), 3u);
  // The hidden widths of both layers, which no operation ties: weights and results, 4-byte
  // elements.
  EXPECT_THAT(decisions[0].arguments, ElementsAre("params[*]['up'] 1", "params[*]['down'] 0"));
  EXPECT_EQ(decisions[0].most, 32);
  EXPECT_EQ(decisions[0].values, 6);
  EXPECT_EQ(decisions[0].bytes, Bytes(4 * (4 * 16 * 32 + 2 * 8 * 32)));
  EXPECT_EQ(decisions[0].argument_bytes, Bytes(4 * 4 * 16 * 32));
  // The width: x, all weights, and what is between the layers and behind them.
  EXPECT_THAT(decisions[1].arguments,
              ElementsAre("x 1", "params[*]['up'] 0", "params[*]['down'] 1"));
  EXPECT_EQ(decisions[1].values, 7);
  // Rows.
  EXPECT_THAT(decisions[2].arguments, ElementsAre("x 0"));
  EXPECT_EQ(decisions[2].most, 8);
}

// No operation ties what a product reads to what it writes, so each layer has a width of its own:
// of x, between the layers and behind them; two hidden ones, and rows.
TEST(Decisions, LayersOfOtherNamesAreDecidedApart) {
  const std::vector<Decision> decisions = OfTwoLayers("last").all;
  ASSERT_EQ(decisions.size(), 6u);
  EXPECT_THAT(decisions[0].arguments, ElementsAre("params[*]['up'] 1", "params[*]['down'] 0"));
  EXPECT_EQ(decisions[0].values, 3);
}

// x x^T: rows against rows; of the result only one dimension can be split by an axis.
TEST(Decisions, ConflictsAreCounted) {
  ShardedTestModule m;
  Instruction* x = m.Argument(F32({8, 16}), "");
  Instruction* turned = m.Add(Opcode::kTranspose, F32({16, 8}), {x});
  for (const int64_t d : {1, 0}) turned->mutable_attrs().add_dimensions(d);
  m.Dot(x, turned, {8, 8});
  for (const Decision& d : DecisionsOf(m.module()).all) EXPECT_EQ(d.conflicts, d.most == 8 ? 1 : 0);
}

// The program is exported without any sharding.
TEST(Decisions, AProgramOfOneDeviceHasThem) {
  hlo::TestModule m;
  Instruction* x = m.Param(F32({8, 16}));
  Instruction* w = m.Param(F32({16, 32}));
  Instruction* dot = m.Add(Opcode::kDot, F32({8, 32}), {x, w});
  dot->mutable_attrs().mutable_dot_dimension_numbers()->add_lhs_contracting_dimensions(1);
  dot->mutable_attrs().mutable_dot_dimension_numbers()->add_rhs_contracting_dimensions(0);
  const auto normalised = Normalise(m.module().Clone(), 1);
  ASSERT_TRUE(normalised.ok()) << normalised.status();
  const Decisions decisions = FindDecisions(*normalised).value();
  ASSERT_EQ(decisions.all.size(), 3u);
  for (const Decision& d : decisions.all) EXPECT_EQ(d.values, 2);
}

// Arguments of one pattern with other shapes: a decision each, with a name each.
TEST(Decisions, NamesAreUnique) {
  ShardedTestModule m;
  Instruction* h = m.Argument(F32({8, 16}), "");
  Name(h, "x");
  int64_t width = 16;
  for (const int layer : {0, 1, 2}) {
    Instruction* w = m.Argument(F32({width, width * 2}), "");
    Name(w, "layers[" + std::to_string(layer) + "]");
    width *= 2;
    h = m.Dot(h, w, {8, width});
  }
  const Decisions decisions = DecisionsOf(m.module());
  ASSERT_EQ(decisions.all.size(), 5u);  // rows and four widths
  std::set<std::string> names;
  for (const Decision& d : decisions.all) names.insert(d.name);
  EXPECT_EQ(names.size(), 5u);
}

}  // namespace
}  // namespace tpusim::sharding
