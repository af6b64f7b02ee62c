#include "workloads/sharding/stated_shardings.h"

#include "sharding_testing.h"

namespace tpusim::sharding {
namespace {

using hlo::F32;
using hlo::Instruction;
using hlo::Opcode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(StatedMeshText, NamesWithSizes) {
  const auto axes = ParseStatedMesh("data=4,model=8");
  ASSERT_TRUE(axes.ok());
  EXPECT_THAT(*axes, ElementsAre(MeshAxis{"data", 4}, MeshAxis{"model", 8}));
}

TEST(StatedMeshText, OtherFormsAreRefused) {
  for (const char* text : {"", "data", "data=", "=4", "data=0", "data=-2", "data=4,data=2",
                           "data=4,,model=2", "data=x", "data=4;model=2"}) {
    EXPECT_THAT(Message(ParseStatedMesh(text).status()), HasSubstr("is no mesh, such as")) << text;
  }
}

// out = dot(a [8,16] split by x, w [16,32] split by y in dimension 1).
struct Product {
  Product() {
    a = m.Argument(F32({8, 16}), "[{\"x\"}, {}]");
    w = m.Argument(F32({16, 32}), "[{}, {\"y\"}]");
    w->mutable_attrs().mutable_metadata()->set_op_name("params['w']");
    out = m.Dot(a, w, {8, 32});
  }
  void Shard(const char* mesh, std::initializer_list<const char*> arguments) {
    m.Shard(Options(mesh, arguments));
  }
  std::string Error(const char* mesh, std::initializer_list<const char*> arguments) {
    const auto sharded = ShardModule(m.module(), 0, Options(mesh, arguments));
    return sharded.ok() ? "ok" : Message(sharded.status());
  }
  static PropagationOptions Options(const char* mesh, std::initializer_list<const char*> stated) {
    PropagationOptions options;
    if (*mesh != '\0') options.mesh = ParseStatedMesh(mesh).value();
    for (const char* text : stated) {
      options.arguments.push_back(ParseStatedConstraint(text).value());
    }
    return options;
  }
  ShardedTestModule m;
  Instruction *a, *w, *out;
};

// The test's mesh is x=4, y=2.
TEST(StatedShardings, ShardingsOfTheProgramGoByTheNamesOfAxes) {
  Product p;
  p.Shard("y=4,x=2", {});
  EXPECT_EQ(p.m.sharded().mesh, (Mesh{{{"y", 4}, {"x", 2}}, {}}));
  EXPECT_EQ(p.m.Of(p.a), "[{x}, {}]");
  EXPECT_EQ(p.m.Of(p.w), "[{}, {y}]");
  EXPECT_EQ(p.m.Of(p.out), "[{x}, {y}]");
}

TEST(StatedShardings, AnAxisThatIsGoneSplitsNothing) {
  Product p;
  p.Shard("x=8", {});
  EXPECT_EQ(p.m.Of(p.a), "[{x}, {}]");
  EXPECT_EQ(p.m.Of(p.w), "[{}, {}]");
}

TEST(StatedShardings, OfAnArgumentInsteadOfTheProgramsOwn) {
  Product p;
  p.Shard("", {"params['w']=P('x')"});
  EXPECT_EQ(p.m.Of(p.w), "[{x}, {}]");
  EXPECT_EQ(p.m.Of(p.a), "[{x}, {}]");
}

TEST(StatedShardings, AStarStandsForAnyText) {
  Product p;
  p.Shard("m=8", {"params[*]=P(None, 'm')", "p*=P('m')"});  // the second: names of parameters
  EXPECT_EQ(p.m.Of(p.w), "[{m}, {}]");
  EXPECT_EQ(p.m.Of(p.a), "[{m}, {}]");
}

TEST(StatedShardings, ErrorsSayWhatDoesNotGo) {
  Product p;
  EXPECT_THAT(
      p.Error("", {"params['v']=P('x')"}),
      HasSubstr("--shard params['v']=P('x'): the program has no argument 'params['v']', the "
                "nearest is 'params['w']'"));
  EXPECT_THAT(p.Error("", {"params['w']=P('z')"}),
              HasSubstr("--shard params['w']=P('z'): the mesh has no axis 'z'; its axes are x, y"));
  EXPECT_THAT(p.Error("", {"params['w']=P(None, None, 'x')"}), HasSubstr("3 dimensions given"));
  EXPECT_THAT(p.Error("x=1,y=8", {"params['w']=P(('x', 'y'))"}), "ok");
}

TEST(StatedShardings, MayBeForAnotherNumberOfDevices) {
  Product p;
  p.Shard("x=2,y=2", {});
  EXPECT_EQ(p.m.Of(p.a), "[{x}, {}]");
  p.m.Add(Opcode::kPartitionId, hlo::MakeShape(hlo::PrimitiveType::kU32, {}), {});
  EXPECT_THAT(p.Error("x=2,y=2", {}),
              HasSubstr("--mesh: mesh['x'=2,'y'=2] has 4 devices, the program's mesh['x'=4,'y'=2] "
                        "has 8, which its collectives are for"));
}

TEST(StatedShardings, WhatJaxWouldRefuseIsRefused) {
  ShardedTestModule m;
  Instruction* a = m.Argument(F32({12, 16}), "[{\"x\"}, {}]");
  m.Add(Opcode::kNegate, F32({12, 16}), {a});
  PropagationOptions options;
  options.mesh = ParseStatedMesh("x=8").value();
  EXPECT_THAT(Message(ShardModule(m.module(), 0, options).status()),
              HasSubstr("has 12 elements along dimension 0, which 8 shards do not divide ([{x}, "
                        "{}])"));
}

}  // namespace
}  // namespace tpusim::sharding
