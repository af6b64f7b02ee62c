#include "workloads/sharding/propagate.h"

#include <ctime>

#include "tests/workloads/sharding/sharding_testing.h"

namespace tpusim::sharding {
namespace {

using hlo::Computation;
using hlo::F32;
using hlo::Instruction;
using hlo::MakeTupleShape;
using hlo::Opcode;
using hlo::S32;
using ::testing::HasSubstr;

TEST(Propagate, ThroughADot) {
  ShardedTestModule m;
  Instruction* a = m.Argument(F32({8, 16}), "[{\"x\"}, {}]");
  Instruction* b = m.Argument(F32({16, 32}), "[{}, {\"y\"}]");
  m.Dot(a, b, {8, 32});
  m.Shard();
  EXPECT_EQ(m.OfRoot(), "[{x}, {y}]");
}

// Split over devices, the inner sum would be exchanged with the batch still in it.
TEST(Propagate, SumsOfSumsAreOneBefore) {
  ShardedTestModule m;
  Computation* add = m.Reducer(Opcode::kAdd);
  Instruction* a = m.Argument(F32({8, 16, 4}), "[{}, {\"x\"}, {}]");
  Instruction* zero = hlo::AddConstant(m.entry(), hlo::PrimitiveType::kF32, 0);
  Instruction* rows = m.Add(Opcode::kReduce, F32({8, 4}), {a, zero});
  rows->set_called({add});
  hlo::SetDimensions(rows, {1});
  const std::string name = rows->name();
  Instruction* batch = m.Add(Opcode::kReduce, F32({4}), {rows, zero});
  batch->set_called({add});
  hlo::SetDimensions(batch, {0});
  m.Shard();
  EXPECT_EQ(m.Of(name), "no " + name);
  EXPECT_EQ(m.OfRoot(), "[{}]");
}

TEST(Propagate, BackwardsFromAResult) {
  ShardedTestModule m;
  Instruction* a = m.Add(Opcode::kIota, F32({8, 16}), {});
  Instruction* b = m.Add(Opcode::kSine, F32({8, 16}), {a});
  m.Constrain(b, "[{\"x\"}, {\"y\"}]");
  m.Shard();
  EXPECT_EQ(m.Of(a), "[{x}, {y}]");
}

TEST(Propagate, AClosedDimensionIsNeverAddedTo) {
  ShardedTestModule m;
  Instruction* a = m.Argument(F32({8, 8}), "[{\"x\"}, {\"y\"}]");
  Instruction* s = m.Add(Opcode::kSine, F32({8, 8}), {a});
  Instruction* c = m.Constrain(s, "[{?}, {}]");
  const std::string name = c->name();
  m.Add(Opcode::kCosine, F32({8, 8}), {c});
  m.Shard();
  EXPECT_EQ(m.OfRoot(), "[{x}, {}]");
  EXPECT_EQ(m.Of(s), "[{x}, {y}]");
}

TEST(Propagate, PinnedAxesAreNotUsed) {
  ShardedTestModule m;
  Instruction* a = m.Argument(F32({8, 8}), "[{\"x\"}, {\"y\"}]");
  m.Constrain(a, "[{?}, {?}], replicated={\"y\"}");
  m.Shard();
  EXPECT_EQ(m.OfRoot(), "[{x}, {}]");
}

// The argument's y (p1) would win by coming first; the other one is p0.
TEST(Propagate, UserPrioritiesAreOutermost) {
  for (const bool urgent : {false, true}) {
    ShardedTestModule m;
    Instruction* a = m.Argument(F32({16, 16}), "[{\"y\"}p1, {}]");
    Instruction* b = m.Argument(F32({16, 16}), urgent ? "[{\"x\"}, {}]" : "[{\"x\"}p2, {}]");
    m.Add(Opcode::kAdd, F32({16, 16}), {a, b});
    m.Shard();
    // Disagreement within one priority would give nothing; here the first
    // priority to speak decides.
    EXPECT_EQ(m.OfRoot(), urgent ? "[{x}, {}]" : "[{y}, {}]");
  }
}

// i from the left operand and j from the right one both want x. XLA's default
// gives it to the first; asked to avoid conflicts first, the dot waits, and the
// sum with z settles it.
TEST(Propagate, BasicFirstIsAnOption) {
  for (const bool basic_first : {false, true}) {
    ShardedTestModule m;
    Instruction* a = m.Argument(F32({16, 16}), "[{\"x\"}, {}]");
    Instruction* b = m.Argument(F32({16, 16}), "[{}, {\"x\"}]");
    Instruction* ones = m.Add(Opcode::kIota, F32({16, 16}), {});
    Instruction* dot = m.Dot(m.Add(Opcode::kAdd, F32({16, 16}), {a, ones}), b, {16, 16});
    Instruction* wide = m.Argument(F32({16, 16, 8}), "[{}, {\"x\"}, {}]");
    Instruction* zero = m.Add(Opcode::kConstant, F32({}), {});
    Instruction* z = m.Add(Opcode::kReduce, F32({16, 16}), {wide, zero});
    z->mutable_attrs().add_dimensions(2);
    z->set_called({m.Reducer(Opcode::kAdd)});
    m.Add(Opcode::kAdd, F32({16, 16}), {dot, z});
    PropagationOptions options;
    options.basic_first = basic_first;
    m.Shard(options);
    EXPECT_EQ(m.Of(dot), basic_first ? "[{}, {x}]" : "[{x}, {}]");
  }
}

TEST(Propagate, AConstraintTellsWhatItConstrains) {
  ShardedTestModule m;
  Instruction* a = m.Argument(F32({8, 16}), "[{\"x\"}, {}]");
  Instruction* b = m.Argument(F32({16, 32}), "[{}, {}]");
  Instruction* dot = m.Dot(a, b, {8, 32});
  m.Constrain(dot, "[{}, {\"x\"}]");
  m.Shard();
  EXPECT_EQ(m.Of(dot), "[{}, {x}]");
}

TEST(Propagate, TwoConstraintsThatDisagreeTellNothing) {
  ShardedTestModule m;
  Instruction* a = m.Argument(F32({8, 8}), "");
  Instruction* s = m.Add(Opcode::kSine, F32({8, 8}), {a});
  Instruction* one = m.Constrain(s, "[{\"x\"}, {}]");
  Instruction* two = m.Constrain(s, "[{}, {\"x\"}]");
  m.Add(Opcode::kTuple, MakeTupleShape({F32({8, 8}), F32({8, 8})}), {one, two});
  m.Shard();
  EXPECT_EQ(m.OfRoot(), "[{x}, {}] [{}, {x}]");
}

TEST(Propagate, UnreducedIsWhatTheDotLeaves) {
  ShardedTestModule m;
  Instruction* a = m.Argument(F32({8, 16}), "[{}, {\"x\"}]");
  Instruction* b = m.Argument(F32({16, 8}), "[{\"x\"}, {}]");
  Instruction* dot = m.Dot(a, b, {8, 8});
  Instruction* u = m.Constrain(dot, "[{}, {}], unreduced={\"x\"}");
  m.Constrain(u, "[{\"x\"}, {}]");
  m.Shard();
  EXPECT_EQ(m.Of(dot), "[{}, {}] unreduced={x}");
  EXPECT_EQ(m.OfRoot(), "[{x}, {}]");
}

// while (i < 3) v = sin(v) + w: v takes the sharding of w, w keeps its own.
TEST(Propagate, ThroughALoopsCarry) {
  ShardedTestModule m;
  const hlo::Shape carry = MakeTupleShape({S32({}), F32({8, 8}), F32({8, 8})});
  Computation* body = m.module().AddComputation("body");
  Instruction* p = m.Param(body, carry);
  const auto element = [&](Computation* c, Instruction* tuple, int64_t i) {
    Instruction* e = m.Add(c, Opcode::kGetTupleElement, carry.tuple[i], {tuple});
    e->mutable_attrs().set_tuple_index(i);
    return e;
  };
  Instruction* v = element(body, p, 1);
  Instruction* w = element(body, p, 2);
  Instruction* sum =
      m.Add(body, Opcode::kAdd, F32({8, 8}), {m.Add(body, Opcode::kSine, F32({8, 8}), {v}), w});
  m.Add(body, Opcode::kTuple, carry, {element(body, p, 0), sum, w});
  Computation* condition = m.module().AddComputation("condition");
  Instruction* q = m.Param(condition, carry);
  Instruction* three = m.Add(condition, Opcode::kConstant, S32({}), {});
  m.Add(condition, Opcode::kCompare, hlo::Pred(), {element(condition, q, 0), three})
      ->mutable_attrs()
      .set_comparison_direction("LT");
  Instruction* zero = m.Add(Opcode::kConstant, S32({}), {});
  Instruction* start = m.Add(Opcode::kIota, F32({8, 8}), {});
  Instruction* weights = m.Argument(F32({8, 8}), "[{\"x\"}, {\"y\"}]");
  Instruction* init = m.Add(Opcode::kTuple, carry, {zero, start, weights});
  Instruction* loop = m.Add(Opcode::kWhile, carry, {init});
  loop->set_called({body, condition});
  element(m.entry(), loop, 1);
  m.Shard();
  EXPECT_EQ(m.OfRoot(), "[{x}, {y}]");
  EXPECT_EQ(m.Of(start), "[{x}, {y}]");
  EXPECT_EQ(m.Of(sum), "[{x}, {y}]");
  EXPECT_THAT(ToString(m.sharded()), HasSubstr("of the carry of"));
}

// A value that a loop only reads is known in its body as it is before the loop. n says by which
// devices
// channels are split, d by which its rows are, and both want x. d has it from its product, which
// comes before the loop: so the product in the body splits rows, and n is gathered; or else all
// that a scan reads and saves would change places.
TEST(Propagate, ALoopReadsWhatIsKnownBeforeIt) {
  ShardedTestModule m;
  const hlo::Shape carry = MakeTupleShape({S32({}), F32({16, 4, 8}), F32({16, 4}), F32({8, 16})});
  Computation* body = m.module().AddComputation("body");
  Instruction* p = m.Param(body, carry);
  const auto element = [&](Computation* c, Instruction* tuple, int64_t i) {
    Instruction* e = m.Add(c, Opcode::kGetTupleElement, carry.tuple[i], {tuple});
    e->mutable_attrs().set_tuple_index(i);
    return e;
  };
  Instruction* scale = element(body, p, 2);
  Instruction* rows = element(body, p, 3);
  Instruction* product = m.Add(body, Opcode::kDot, F32({16, 4, 8}), {scale, rows});
  product->mutable_attrs().mutable_dot_dimension_numbers()->add_lhs_batch_dimensions(0);
  product->mutable_attrs().mutable_dot_dimension_numbers()->add_rhs_batch_dimensions(1);
  m.Add(body, Opcode::kTuple, carry, {element(body, p, 0), product, scale, rows});
  Computation* condition = m.module().AddComputation("condition");
  Instruction* q = m.Param(condition, carry);
  Instruction* three = m.Add(condition, Opcode::kConstant, S32({}), {});
  m.Add(condition, Opcode::kCompare, hlo::Pred(), {element(condition, q, 0), three})
      ->mutable_attrs()
      .set_comparison_direction("LT");
  Instruction* zero = m.Add(Opcode::kConstant, S32({}), {});
  Instruction* start = m.Add(Opcode::kIota, F32({16, 4, 8}), {});
  Instruction* weights = m.Argument(F32({16, 4}), "[{\"x\"}, {}]");
  Instruction* n = m.Add(Opcode::kNegate, F32({16, 4}), {weights});
  Instruction* d = m.Dot(m.Argument(F32({8, 6}), "[{\"x\"}, {}]"),
                         m.Argument(F32({6, 16}), "[{}, {}]"), {8, 16});
  Instruction* init = m.Add(Opcode::kTuple, carry, {zero, start, n, d});
  Instruction* loop = m.Add(Opcode::kWhile, carry, {init});
  loop->set_called({body, condition});
  element(m.entry(), loop, 1);
  m.Shard();
  EXPECT_EQ(m.Of(n), "[{x}, {}]");
  EXPECT_EQ(m.Of(d), "[{x}, {}]");
  EXPECT_EQ(m.Of(product), "[{}, {}, {x}]");
  EXPECT_EQ(m.OfRoot(), "[{}, {}, {x}]");
}

TEST(Propagate, ThroughBranches) {
  ShardedTestModule m;
  const auto branch = [&](Opcode opcode) {
    Computation* c = m.module().AddComputation("branch");
    Instruction* p = m.Param(c, F32({8, 8}));
    m.Add(c, opcode, F32({8, 8}), {p});
    return c;
  };
  Computation* one = branch(Opcode::kSine);
  Computation* two = branch(Opcode::kCosine);
  Instruction* a = m.Argument(F32({8, 8}), "[{\"x\"}, {}]");
  Instruction* b = m.Add(Opcode::kIota, F32({8, 8}), {});
  Instruction* predicate = m.Argument(hlo::Pred(), "");
  Instruction* both = m.Add(Opcode::kConditional, F32({8, 8}), {predicate, a, b});
  both->set_called({one, two});
  m.Add(Opcode::kNegate, F32({8, 8}), {both});
  m.Shard();
  EXPECT_EQ(m.OfRoot(), "[{x}, {}]");
  EXPECT_EQ(m.Of(b), "[{x}, {}]");  // and back through the other branch
}

TEST(Propagate, ShardingGroups) {
  ShardedTestModule m;
  Instruction* a = m.Argument(F32({8, 8}), "[{\"x\"}, {\"y\"}]");
  Instruction* s = m.Add(Opcode::kSine, F32({8, 8}), {a});
  Instruction* other = m.Add(Opcode::kIota, F32({8, 8}), {});
  for (Instruction* member : {s, other}) {
    Instruction* marker = m.Marker("xla.sdy.ShardingGroup", MakeTupleShape({}), {member});
    SetAttribute(marker, "xla.sdy.sharding_group_id", "0");
    marker->mutable_attrs().set_custom_call_has_side_effect(true);
  }
  m.Add(Opcode::kTuple, MakeTupleShape({F32({8, 8}), F32({8, 8})}), {s, other});
  m.Shard();
  EXPECT_EQ(m.OfRoot(), "[{x}, {y}] [{x}, {y}]");
}

TEST(Propagate, BarriersLetAxesPassOneWay) {
  for (const auto& [direction, result] : std::vector<std::pair<std::string, std::string>>{
           {"FORWARD", "[{x}]"}, {"BACKWARD", "[{}]"}, {"NONE", "[{}]"}}) {
    ShardedTestModule m;
    Instruction* a = m.Argument(F32({8}), "[{\"x\"}]");
    Instruction* barrier = m.Marker("xla.sdy.PropagationBarrier", F32({8}), {a});
    SetAttribute(barrier, "xla.sdy.allowed_direction", direction);
    m.Add(Opcode::kSine, F32({8}), {barrier});
    m.Shard();
    EXPECT_EQ(m.OfRoot(), result) << direction;
  }
}

// 6 over x=4: a result has whole axes that divide it.
TEST(Propagate, ResultsHaveWholeAxesThatDivide) {
  ShardedTestModule m;
  Instruction* a = m.Argument(F32({8}), "[{\"x\", \"y\"}]");
  Instruction* r = m.Add(Opcode::kReshape, F32({2, 4}), {a});
  m.Shard();
  // [8] over x,y = [2,4] over x:(1)2 and x:(2)2,y; no piece has a name.
  EXPECT_EQ(m.Of(r), "[{x:(1)2}, {x:(2)2,y}]");
  EXPECT_EQ(m.OfRoot(), "[{}, {}]");
}

TEST(Propagate, ReasonsNameTheirSource) {
  ShardedTestModule m;
  Instruction* a = m.Argument(F32({8, 16}), "[{\"x\"}, {}]");
  Instruction* b = m.Argument(F32({16, 32}), "[{}, {}]");
  Instruction* dot = m.Dot(a, b, {8, 32});
  m.Shard();
  const std::string text = ToString(m.sharded());
  EXPECT_THAT(text, HasSubstr("module test over mesh['x'=4,'y'=2]"));
  EXPECT_THAT(text, HasSubstr("sharding=[{x}, {}]  // parameter"));
  EXPECT_THAT(text,
              HasSubstr("// from operand 0 (" + a->name() + "); step 2 (pass-through dimensions)"));
  (void)dot;
}

TEST(Propagate, AnOpWithoutARuleIsNamed) {
  ShardedTestModule m;
  Instruction* a = m.Argument(F32({8}), "[{\"x\"}]");
  Instruction* i = m.Marker("nobody_knows_this", F32({8}), {a});
  EXPECT_THAT(m.Error(), HasSubstr(i->name()));
}

// A chain of 50,000 ops: no recursion, and ten times as many ops take about ten
// times as long (a quadratic pass would take a hundred times).
TEST(Propagate, TimeIsLinearInDepth) {
  const auto seconds = [](int length) {
    ShardedTestModule m;
    Instruction* v = m.Argument(F32({16, 16}), "[{\"x\"}, {\"y\"}]");
    for (int i = 0; i < length; ++i) v = m.Add(Opcode::kSine, F32({16, 16}), {v});
    const std::clock_t start = std::clock();  // of this process: other work does not count
    m.Shard();
    const double spent = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    EXPECT_EQ(m.OfRoot(), "[{x}, {y}]");
    return spent;
  };
  const double small = seconds(5000);
  EXPECT_LT(seconds(50000), 40 * small + 0.5);
}

}  // namespace
}  // namespace tpusim::sharding
