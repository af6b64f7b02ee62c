#include "workloads/search/space.h"

#include <fmt/format.h>

#include "configs/limit.h"
#include "search_testing.h"
#include "workloads/search/statements.h"

namespace tpusim::search {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

std::vector<std::string> MeshesOf(const Space& space) {
  std::vector<std::string> meshes;
  for (const MeshAxes& mesh : space.meshes()) meshes.push_back(ToString(mesh));
  return meshes;
}

TEST(Space, MeshesAreAllShapesInBothOrders) {
  const Program program = TwoProducts();
  // Where no constraint has names, an axis is what it is by its place; those of size 1 are none.
  const Space space = Space::Of(program.variants[0].decisions, OverTwoAxes()).value();
  EXPECT_THAT(MeshesOf(space), ElementsAre("x=1,y=8", "x=2,y=4", "x=4,y=2"));
  SpaceOptions names = OverTwoAxes();
  names.keeps_constraints = true;
  EXPECT_THAT(
      MeshesOf(Space::Of(program.variants[0].decisions, names).value()),
      UnorderedElementsAre("x=1,y=8", "x=8,y=1", "x=2,y=4", "x=4,y=2", "y=2,x=4", "y=4,x=2"));
}

TEST(Space, ChoicesAreSetsOfAxes) {
  const Program program = TwoProducts();
  const Space space = Space::Of(program.variants[0].decisions, OverTwoAxes()).value();
  ASSERT_EQ(space.decisions(), 3u);
  EXPECT_THAT(space.Choices(0, 0), ElementsAre(0, 2));        // y=8
  EXPECT_THAT(space.Choices(1, 0), ElementsAre(0, 1, 2, 3));  // x=2,y=4
  // 2^3 on one axis, 4^3 on each of two meshes of two.
  EXPECT_EQ(space.Count(), 8 + 64 + 64);
  EXPECT_EQ(space.Below(1, 2), 4);
}

TEST(Space, AnArgumentHasAnAxisOnce) {
  const Program program = TwoProducts();
  const Space space = Space::Of(program.variants[0].decisions, OverTwoAxes()).value();
  const size_t f = DecisionOf(space, "params['up'] 1"), d = DecisionOf(space, "x 1");
  std::vector<AxisSet> axes(std::max(f, d) + 1, 0);
  axes[f] = axes[d] = 1;
  EXPECT_FALSE(space.Possible(axes));  // up has both
  axes[d] = 2;
  EXPECT_TRUE(space.Possible(axes));
}

// The program has three decisions; the first two are left.
TEST(Space, DecisionsBeyondTheLimitAreCounted) {
  const Program program = TwoProducts();
  const LimitScope scope({{"shard.decisions", 2}});
  const Space space = Space::Of(program.variants[0].decisions, OverTwoAxes()).value();
  EXPECT_EQ(space.decisions(), 2);
  std::vector<Record> reached;
  scope.AddTo(Records(nullptr, &reached));
  ASSERT_EQ(reached.size(), 1);
  EXPECT_EQ(ToString(reached[0]), "limit shard.decisions of 2 reached: 1 decisions left out");
}

// Rows and hidden width meet in h, which is no argument.
TEST(Space, ConflictsAreOfWhatSharesNoArgument) {
  const Program program = TwoProducts();
  const Space space = Space::Of(program.variants[0].decisions, OverTwoAxes()).value();
  const size_t b = DecisionOf(space, "x 0"), f = DecisionOf(space, "params['up'] 1");
  ASSERT_EQ(space.conflicts().size(), 1u);
  std::vector<AxisSet> axes(3, 0);
  axes[b] = 3;
  axes[f] = 2;
  EXPECT_THAT(space.Conflicts(axes), ElementsAre(0u));
  axes[f] = 0;
  EXPECT_THAT(space.Conflicts(axes), ElementsAre());
}

// y = sum of x[n] table[n]: tables of 65536 and of 12 rows, which go by one name.
TEST(Space, SmallOnesFollowLargeOnesOfTheirName) {
  sharding::ShardedTestModule m;
  std::vector<hlo::Instruction*> parts;
  for (const int64_t rows : {65536, 12}) {
    const auto argument = [&](const std::string& name, std::vector<int64_t> dims) {
      hlo::Instruction* made = m.Argument(hlo::F32(std::move(dims)), "");
      made->mutable_attrs().mutable_metadata()->set_op_name(fmt::format("{}_{}", name, rows));
      return made;
    };
    parts.push_back(m.Dot(argument("x", {8, rows}), argument("table", {rows, 256}), {8, 256}));
  }
  m.Add(hlo::Opcode::kAdd, hlo::F32({8, 256}), parts);
  hlo::ImportedWorkload imported;
  imported.module = m.module().Clone();
  const Program program =
      ProgramOf(std::move(imported), configs::LoadConfig("v5e-4x2", {}).value(), {}).value();
  const Space space = Space::Of(program.variants[0].decisions, OverTwoAxes()).value();
  const size_t rows = DecisionOf(space, "table_* 0");
  const auto small = static_cast<int32_t>(
      std::ranges::find(program.variants[0].decisions.all, 12, &sharding::Decision::most) -
      program.variants[0].decisions.all.begin());
  EXPECT_EQ(space.InSpace(small), -1);
  EXPECT_EQ(space.Leader(small), static_cast<int32_t>(rows));
  // Of four times two, in this order, four divide 12 rows; eight do not.
  const auto mesh = std::ranges::find(space.meshes(), MeshAxes{{"x", 4}, {"y", 2}});
  Candidate candidate{static_cast<int32_t>(mesh - space.meshes().begin()), {}, {}};
  candidate.axes.assign(space.decisions(), 0);
  candidate.axes[rows] = 3;
  std::vector<std::string> stated;
  for (const sharding::StatedConstraint& argument : StatementsOf(space, candidate).arguments) {
    stated.push_back(argument.text);
  }
  EXPECT_THAT(stated,
              UnorderedElementsAre("x_65536=P(None, ('x', 'y'))", "table_65536=P(('x', 'y'))",
                                   "x_12=P(None, 'x')", "table_12=P('x')"));
}

// y[b, e] = (x[b, d] up[d, f]) down[f, e] with two rows beside weights of 16 MiB, as in decoding,
// and -t of a small table: the rows are in every product, the table in none.
TEST(Space, TheBatchIsADecisionHoweverFewItsBytes) {
  sharding::ShardedTestModule m;
  const auto argument = [&](const std::string& name, std::vector<int64_t> dims) {
    hlo::Instruction* made = m.Argument(hlo::F32(std::move(dims)), "");
    made->mutable_attrs().mutable_metadata()->set_op_name(name);
    return made;
  };
  hlo::Instruction* x = argument("x", {2, 1024});
  hlo::Instruction* h = m.Dot(x, argument("up", {1024, 4096}), {2, 4096});
  m.Add(hlo::Opcode::kNegate, hlo::F32({8, 3}), {argument("t", {8, 3})});
  m.Dot(h, argument("down", {4096, 1024}), {2, 1024});
  hlo::ImportedWorkload imported;
  imported.module = m.module().Clone();
  const Program program =
      ProgramOf(std::move(imported), configs::LoadConfig("v5e-4x2", {}).value(), {}).value();
  const Variant& variant = program.variants[0];
  SpaceOptions options = OverTwoAxes();
  options.work = variant.work;
  const Space space = Space::Of(variant.decisions, options).value();
  const auto left_out = [&](const Space& of) {
    std::vector<std::string> names;
    for (const auto& [decision, leader] : of.left_out()) {
      EXPECT_EQ(leader, -1);
      names.push_back(variant.decisions.all[static_cast<size_t>(decision)].name);
    }
    return names;
  };
  EXPECT_EQ(space.decisions(), 4u);
  const auto rows =
      static_cast<size_t>(&space.Decision(DecisionOf(space, "x 0")) - variant.decisions.all.data());
  EXPECT_NEAR(variant.work[rows], 1, 1e-9);
  // Its other dimension, of three, is split by no axis of two, four or eight.
  EXPECT_THAT(left_out(space), ElementsAre("t 0"));
  // Without products what most values have is the batch.
  const Space without = Space::Of(variant.decisions, OverTwoAxes()).value();
  EXPECT_GE(without.InSpace(static_cast<int32_t>(rows)), 0);
  // What is fixed is decided.
  options.fixed = {ParseStatedDims("t=P(?, None)").value()};
  EXPECT_THAT(left_out(Space::Of(variant.decisions, options).value()), ElementsAre("t 0"));
  options.fixed = {ParseStatedDims("t=P('x')").value()};
  EXPECT_THAT(left_out(Space::Of(variant.decisions, options).value()), ElementsAre());
}

TEST(Space, WhatIsFixedAndForbidden) {
  const Program program = TwoProducts();
  SpaceOptions options = OverTwoAxes();
  options.fixed = {ParseStatedDims("params/up=P(?, 'y')").value()};
  options.forbidden = {ParseStatedDims("x=P('y')").value()};
  const Space space = Space::Of(program.variants[0].decisions, options).value();
  const size_t b = DecisionOf(space, "x 0"), f = DecisionOf(space, "params['down'] 0");
  // Where names are said, each order of them is a mesh of its own.
  const auto mesh = std::ranges::find(space.meshes(), MeshAxes{{"x", 2}, {"y", 4}});
  ASSERT_NE(mesh, space.meshes().end());
  const auto number = static_cast<size_t>(mesh - space.meshes().begin());
  EXPECT_EQ(space.meshes().size(), 5u);  // not x=8,y=1, where y splits nothing
  EXPECT_THAT(space.Choices(number, f), ElementsAre(2));
  EXPECT_THAT(space.Choices(number, b), ElementsAre(0, 1, 3));
  // What a forbidden spec leaves out is open.
  EXPECT_EQ(space.Choices(number, DecisionOf(space, "x 1")).size(), 4u);
}

TEST(Space, WhatCannotBeIsSaid) {
  const Program program = TwoProducts();
  const auto error = [&](const std::string& fixed, const MeshAxes& mesh = {}) {
    SpaceOptions options = OverTwoAxes();
    options.mesh = mesh;
    options.fixed = {ParseStatedDims(fixed).value()};
    return Message(Space::Of(program.variants[0].decisions, options).status());
  };
  EXPECT_THAT(
      error("params['wide']=P('x')"),
      HasSubstr("--fix params['wide']=P('x'): the program has no argument 'params['wide']'"));
  EXPECT_THAT(error("x=P(None, None, 'x')"), HasSubstr("3 dimensions given for x f32[64,256]"));
  EXPECT_THAT(error("params/up=P('x', 'x')"),
              HasSubstr("--fix params/up=P('x', 'x'): axis 'x' is used twice"));
  EXPECT_THAT(error("x=P('z')"),
              HasSubstr("--fix x=P('z'): meshes have no axis 'z'; theirs are x, y"));
  EXPECT_THAT(error("x=P('x')", {{"x", 5}, {"y", 1}}),
              HasSubstr("no sharding is left on 1 mesh with --fix x=P('x'): the axes must divide"));
}

TEST(Statements, EveryArgumentIsStated) {
  const Program program = TwoProducts();
  const Space space = Space::Of(program.variants[0].decisions, OverTwoAxes()).value();
  Candidate candidate{1, std::vector<AxisSet>(3, 0), {}};
  candidate.axes[DecisionOf(space, "x 0")] = 3;
  candidate.axes[DecisionOf(space, "params['up'] 1")] = 2;
  const Statements statements = StatementsOf(space, candidate);
  EXPECT_EQ(ToString(statements.mesh), "x=2,y=4");
  std::vector<std::string> texts;
  for (const sharding::StatedConstraint& stated : statements.arguments) {
    texts.push_back(stated.text);
  }
  EXPECT_THAT(texts,
              ElementsAre("x=P(('x', 'y'))", "params['up']=P(None, 'y')", "params['down']=P('y')"));
  EXPECT_TRUE(statements.constraints.empty());
}

TEST(Statements, ASettledConflictIsAConstraintWhereBothMeet) {
  const Program program = TwoProducts();
  const Space space = Space::Of(program.variants[0].decisions, OverTwoAxes()).value();
  const size_t b = DecisionOf(space, "x 0"), f = DecisionOf(space, "params['up'] 1");
  const bool rows_first = space.conflicts()[0].first == static_cast<int32_t>(b);
  Candidate candidate{1, std::vector<AxisSet>(3, 0), {}};
  candidate.axes[b] = 3;
  candidate.axes[f] = 2;
  candidate.conflicts = {rows_first ? ConflictResolution::kFirst : ConflictResolution::kSecond};
  Statements statements = StatementsOf(space, candidate);
  ASSERT_EQ(statements.constraints.size(), 1u);
  EXPECT_EQ(SpecText(statements.constraints[0].dims), "P(('x', 'y'))");
  candidate.conflicts = {rows_first ? ConflictResolution::kSecond : ConflictResolution::kFirst};
  statements = StatementsOf(space, candidate);
  EXPECT_EQ(SpecText(statements.constraints[0].dims), "P('x', 'y')");
}

// h[b, f]: as is decided, or by any axes; an axis once.
TEST(Space, ANamedValueHasChoicesOfItsOwn) {
  const Program program = TwoProducts("", {"dot"});
  const Space space = Space::Of(program.variants[0].decisions, OverTwoAxes()).value();
  ASSERT_EQ(space.decisions(), 5u);
  EXPECT_EQ(space.NameOf(3), "dot 0");
  EXPECT_EQ(space.NameOf(4), "dot 1");
  EXPECT_THAT(space.Choices(1, 4), ElementsAre(kAsDecided, 0, 1, 2, 3));
  EXPECT_EQ(space.Count(), 8 * 9 + 2 * 64 * 25);
  EXPECT_TRUE(space.Possible({0, 0, 0, kAsDecided, kAsDecided}));
  EXPECT_TRUE(space.Possible({3, 0, 0, 3, kAsDecided}));
  EXPECT_TRUE(space.Possible({0, 0, 0, 1, 2}));
  EXPECT_FALSE(space.Possible({0, 0, 0, 1, 3}));
}

TEST(Statements, AConstraintOnANamedValue) {
  const Program program = TwoProducts("", {"dot"});
  const Space space = Space::Of(program.variants[0].decisions, OverTwoAxes()).value();
  Candidate candidate{1, {0, 0, 0, kAsDecided, kAsDecided}, {}};
  candidate.axes[DecisionOf(space, "x 0")] = 3;
  const auto spec = [&](AxisSet rows, AxisSet columns) {
    candidate.axes[3] = rows;
    candidate.axes[4] = columns;
    const Statements statements = StatementsOf(space, candidate);
    return statements.constraints.empty() ? "" : statements.constraints[0].text;
  };
  EXPECT_EQ(spec(kAsDecided, kAsDecided), "");
  EXPECT_EQ(spec(0, kAsDecided), "dot=P()");
  // What splits the columns splits the rows no more.
  EXPECT_EQ(spec(kAsDecided, 2), "dot=P('x', 'y')");
  EXPECT_EQ(spec(2, 1), "dot=P('y', 'x')");
  EXPECT_EQ(spec(kAsDecided, 0), "dot=P(('x', 'y'))");
  EXPECT_THAT(ToString(program, space, candidate), HasSubstr("dot 1: whole"));
}

TEST(Space, WhatMayBeConstrainedIsInTheProgram) {
  hlo::ImportedWorkload imported;
  sharding::ShardedTestModule m;
  m.Dot(m.Argument(hlo::F32({8, 16}), ""), m.Argument(hlo::F32({16, 8}), ""), {8, 8});
  imported.module = m.module().Clone();
  VariantOptions options;
  options.constrainable = {"dut"};
  const absl::StatusOr<Program> program =
      ProgramOf(std::move(imported), configs::LoadConfig("v5e-4x2", {}).value(), {}, options);
  EXPECT_THAT(Message(program.status()),
              HasSubstr("--may-constrain dut: no array of the program has the name 'dut', the "
                        "nearest is 'dot'"));
}

TEST(Statements, TheProgramsOwnConstraintsFollowUnlessTheyAreKept) {
  const Program program = TwoProducts("[{\"x\"}, {}]");
  SpaceOptions options = OverTwoAxes();
  Space space = Space::Of(program.variants[0].decisions, options).value();
  Candidate candidate{1, std::vector<AxisSet>(3, 0), {}};
  candidate.axes[DecisionOf(space, "params['up'] 1")] = 2;
  const Statements statements = StatementsOf(space, candidate);
  ASSERT_EQ(statements.constraints.size(), 1u);
  EXPECT_EQ(SpecText(statements.constraints[0].dims), "P(None, 'y')");
  // What is constrained beside is left to that.
  options.constrained = {statements.constraints[0].values[0]};
  space = Space::Of(program.variants[0].decisions, options).value();
  EXPECT_TRUE(StatementsOf(space, candidate).constraints.empty());
  options = OverTwoAxes();
  options.keeps_constraints = true;
  space = Space::Of(program.variants[0].decisions, options).value();
  EXPECT_TRUE(StatementsOf(space, candidate).constraints.empty());
}

TEST(StatedDims, Forms) {
  const StatedDims dims = ParseStatedDims("params/*/up=P(?, ('x', 'y'), None)").value();
  EXPECT_EQ(dims.argument, "params/*/up");
  ASSERT_EQ(dims.dims.size(), 3u);
  EXPECT_FALSE(dims.dims[0].has_value());
  EXPECT_THAT(*dims.dims[1], ElementsAre("x", "y"));
  EXPECT_TRUE(dims.dims[2]->empty());
  for (const char* bad : {"", "x", "x=", "x=P(", "=P('x')", "x,y=P('x')", "x=[{x}]", "x=P(x)"}) {
    EXPECT_FALSE(ParseStatedDims(bad).ok()) << bad;
  }
}

TEST(StatedDims, PathsAreNamesWithoutBrackets) {
  EXPECT_EQ(PathOf("params['layers'][0].up"), "params/layers/0/up");
  EXPECT_EQ(PathOf("x"), "x");
}

}  // namespace
}  // namespace tpusim::search
