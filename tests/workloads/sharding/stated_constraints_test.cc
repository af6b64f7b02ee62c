// The text of stated constraints; texts/stated_constraints.hlo has what they do.
#include "workloads/sharding/stated/stated_constraints.h"

#include "sharding_testing.h"

namespace tpusim::sharding {
namespace {

using hlo::F32;
using hlo::Instruction;
using hlo::Opcode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

StatedConstraint StatedOf(std::string_view text) {
  const auto parsed = ParseStatedConstraint(text);
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  return parsed.ok() ? *parsed : StatedConstraint();
}

TEST(StatedConstraintText, AsAPartitionSpec) {
  const StatedConstraint c = StatedOf("dot.1, dot.2 = P('x', None, (\"y\", 'z'),)");
  EXPECT_THAT(c.values, ElementsAre("dot.1", "dot.2"));
  EXPECT_TRUE(c.is_spec);
  EXPECT_THAT(c.dims, ElementsAre(ElementsAre("x"), ElementsAre(), ElementsAre("y", "z")));
  EXPECT_THAT(StatedOf("a=PartitionSpec()").dims, ElementsAre());
}

TEST(StatedConstraintText, AsItIsPrinted) {
  const StatedConstraint c = StatedOf("dot.*=[{x:(1)2,y}, {}]");
  EXPECT_FALSE(c.is_spec);
  EXPECT_THAT(c.dims, ElementsAre(ElementsAre("x:(1)2", "y"), ElementsAre()));
}

// Names are the program's own, keys of dictionaries among them; so are those of axes.
TEST(StatedConstraintText, NamesHaveAnyCharacters) {
  for (const char* name : {"params['w=1']", "params['=P()']", "params['a,b']", "params['a),b']",
                           "params['[x,y']", "params['it's, so']", "a=b", "params[\"q',r\"]"}) {
    const StatedConstraint c = StatedOf(std::string(name) + "=P('x', None)");
    EXPECT_THAT(c.values, ElementsAre(name));
    EXPECT_THAT(c.dims, ElementsAre(ElementsAre("x"), ElementsAre()));
    EXPECT_THAT(StatedOf(std::string(name) + ",y=[{x}]").values, ElementsAre(name, "y"));
  }
  EXPECT_THAT(StatedOf("w=1=P('x=2', ('=', 'y'))").dims,
              ElementsAre(ElementsAre("x=2"), ElementsAre("=", "y")));
  EXPECT_THAT(StatedOf("w=1=P('x=2', ('=', 'y'))").values, ElementsAre("w=1"));
}

TEST(StatedConstraintText, OtherFormsAreRefused) {
  for (const char* text : {"", "a", "=P()", "a=", "a=x", "a=P(x)", "a=P('x'", "a=[x]", "a=[{x}",
                           "a,=P(", "a=P('x\")", "a=P('')"}) {
    EXPECT_THAT(Message(ParseStatedConstraint(text).status()), HasSubstr("is not VALUE=SHARDING"))
        << text;
  }
}

TEST(SpecTextTest, AsItIsWrittenInAProgram) {
  const auto sharding = [](std::vector<Axes> dims) {
    Sharding s;
    for (Axes& axes : dims) s.dims.push_back({std::move(axes)});
    return s;
  };
  EXPECT_EQ(SpecText(sharding({{X(), Y()}, {}}), XY()), "P(('x', 'y'), None)");
  EXPECT_EQ(SpecText(sharding({{}, {Y()}}), XY()), "P(None, 'y')");
  EXPECT_EQ(SpecText(sharding({{XMajor()}, {}}), XY()), "[{x:(1)2}, {}]");
}

// ---- Where the axes of a value come from -----------------------------------

std::string OriginOf(const ShardedModule& sharded, const std::string& name, int32_t axis) {
  for (const Instruction* i : sharded.module->entry()->instructions()) {
    if (i->name() != name) continue;
    for (const AxisOrigin& origin : sharded.shardings.at(i).origins) {
      if (origin.axis == axis) return sharded.origins[origin.origin];
    }
  }
  return "none";
}

TEST(Origins, LeadToTheArgumentThatHadTheAxis) {
  // a [8,16] split by x, w [16,32] by y in dimension 1: the product has both.
  ShardedTestModule m;
  Instruction* a = m.Argument(F32({8, 16}), "[{\"x\"}, {}]");
  Instruction* w = m.Argument(F32({16, 32}), "[{}, {\"y\"}]");
  w->mutable_attrs().mutable_metadata()->set_op_name("params['w']");
  Instruction* dot = m.Dot(m.Add(Opcode::kNegate, F32({8, 16}), {a}), w, {8, 32});
  Instruction* last = m.Add(Opcode::kNegate, F32({8, 32}), {dot});
  m.Shard();
  EXPECT_EQ(m.Of(last), "[{x}, {y}]");
  EXPECT_EQ(OriginOf(m.sharded(), last->name(), 0), "argument " + a->name());
  EXPECT_EQ(OriginOf(m.sharded(), last->name(), 1), "argument params['w']");
}

TEST(Origins, LeadToAConstraint) {
  ShardedTestModule m;
  Instruction* a = m.Argument(F32({8, 16}), "");
  Instruction* constrained =
      m.Constrain(m.Add(Opcode::kNegate, F32({8, 16}), {a}), "[{}, {\"y\"}]");
  constrained->mutable_attrs().mutable_metadata()->set_source_file("model.py");
  constrained->mutable_attrs().mutable_metadata()->set_source_line(12);
  Instruction* last = m.Add(Opcode::kNegate, F32({8, 16}), {constrained});
  m.Shard();
  EXPECT_THAT(OriginOf(m.sharded(), last->name(), 1), HasSubstr("constraint at model.py:12"));
}

}  // namespace
}  // namespace tpusim::sharding
