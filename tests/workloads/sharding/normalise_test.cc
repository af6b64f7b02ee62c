#include "workloads/sharding/normalised/normalise.h"

#include "tests/workloads/sharding/sharding_testing.h"

namespace tpusim::sharding {
namespace {

using hlo::Computation;
using hlo::F32;
using hlo::Instruction;
using hlo::Opcode;
using ::testing::HasSubstr;

int64_t Count(const hlo::Module& module, Opcode opcode) {
  return static_cast<int64_t>(hlo::FindAll(module, opcode).size());
}

TEST(Normalise, MarkersBecomeConstraints) {
  ShardedTestModule m;
  Instruction* a = m.Argument(F32({8}), "[{\"x\"}]");
  m.Marker("xla.sdy.FuncResultSharding", F32({8}), {m.Constrain(a, "[{?}]")});
  m.Say(m.entry()->root(), "[{\"y\"}]");
  auto n = Normalise(m.module().Clone(), 0);
  ASSERT_TRUE(n.ok()) << Message(n.status());
  EXPECT_EQ(Count(*n->module, Opcode::kCustomCall), 0);
  EXPECT_EQ(n->constraints.size(), 2u);
  EXPECT_EQ(n->annotations.size(), 3u);  // the parameter too
  const Annotation& result = n->annotations.at(n->module->entry()->root());
  EXPECT_TRUE(result.is_result);
  EXPECT_EQ(ToString(*result.leaves[0], XY()), "[{y}]");
  // Nothing of the markers is left on instructions.
  for (const Instruction* i : n->module->entry()->instructions()) {
    EXPECT_FALSE(i->attrs().has_frontend_attributes()) << i->name();
  }
}

TEST(Normalise, UnspecifiedDimsAreOpen) {
  ShardedTestModule m;
  Instruction* a = m.Argument(F32({8, 8}), "");
  Instruction* c = m.Marker("Sharding", F32({8, 8}), {a});
  c->mutable_attrs().mutable_sharding()->set_type(hlo::pb::OpSharding::REPLICATED);
  c->mutable_attrs().set_backend_config("unspecified_dims=[1]");
  auto n = Normalise(m.module().Clone(), 0);
  ASSERT_TRUE(n.ok()) << Message(n.status());
  EXPECT_EQ(ToString(*n->annotations.at(n->module->entry()->root()).leaves[0], XY()), "[{}, {?}]");
}

// 2^40 instructions after inlining: refused before anything is copied.
TEST(Normalise, CallsThatMultiplyAreAnError) {
  ShardedTestModule m;
  Computation* last = m.module().AddComputation("f");
  m.Param(last, F32({8}));
  for (int i = 0; i < 40; ++i) {
    Computation* next = m.module().AddComputation("f");
    Instruction* p = m.Param(next, F32({8}));
    Instruction* one = m.Add(next, Opcode::kCall, F32({8}), {p});
    Instruction* two = m.Add(next, Opcode::kCall, F32({8}), {one});
    one->set_called({last});
    two->set_called({last});
    last = next;
  }
  m.Argument(F32({8}), "");
  m.Add(Opcode::kCall, F32({8}), {m.entry()->root()})->set_called({last});
  EXPECT_THAT(m.Error(), HasSubstr("inlining the program's calls gives more than"));
}

// f(v) = sin(v) per shard over `manual`, the other axis left to the compiler if
// there is one.
void AddRegion(ShardedTestModule& m, Instruction* operand, hlo::Shape local,
               const std::string& sharding, const std::string& manual) {
  Computation* body = m.module().AddComputation("xla.sdy.manual_computation_body");
  m.Add(body, Opcode::kSine, local, {m.Param(body, local)});
  Instruction* in = m.Marker("xla.sdy.GlobalToLocalShape", local, {operand});
  SetAttribute(in, "xla.sdy.in_shardings", "#sdy.sharding_per_value<[<@mesh, " + sharding + ">]>");
  SetAttribute(in, "xla.sdy.manual_axes", "#sdy<manual_axes" + manual + ">");
  Instruction* call = m.Add(Opcode::kCall, local, {in});
  call->set_called({body});
  Instruction* out = m.Marker("xla.sdy.LocalToGlobalShape", operand->shape(), {call});
  SetAttribute(out, "xla.sdy.out_shardings",
               "#sdy.sharding_per_value<[<@mesh, " + sharding + ">]>");
  SetAttribute(out, "xla.sdy.manual_axes", "#sdy<manual_axes" + manual + ">");
  for (Instruction* marker : {in, out}) {
    marker->mutable_attrs().set_custom_call_has_side_effect(true);
  }
}

TEST(Regions, AllAxesManual) {
  ShardedTestModule m;
  Instruction* a = m.Argument(F32({8, 8}), "[{}, {}]");
  AddRegion(m, a, F32({2, 4}), "[{\"x\"}, {\"y\"}]", "{\"x\", \"y\"}");
  m.Shard();
  EXPECT_EQ(m.OfRoot(), "[{x}, {y}]");
  ASSERT_EQ(m.sharded().manual_regions.size(), 1u);
  const auto& [call, region] = *m.sharded().manual_regions.begin();
  EXPECT_FALSE(region.partitioned);
  EXPECT_EQ(ToString(region.operands[0], XY()), "[{x}, {y}]");
  EXPECT_FALSE(m.sharded().shardings.contains(call->called()[0]->root()));
}

// x is manual; y comes in from the argument and flows through the body.
TEST(Regions, OtherAxesFlowThroughTheBody) {
  ShardedTestModule m;
  Instruction* a = m.Argument(F32({8, 8}), "[{\"x\"}, {\"y\"}]");
  AddRegion(m, a, F32({2, 8}), "[{\"x\", ?}, {?}]", "{\"x\"}");
  m.Shard();
  EXPECT_EQ(m.OfRoot(), "[{x}, {y}]");
  const auto& [call, region] = *m.sharded().manual_regions.begin();
  EXPECT_TRUE(region.partitioned);
  EXPECT_EQ(ToString(region.operands[0], XY()), "[{x}, {y}]");
  const Instruction* root = call->called()[0]->root();
  EXPECT_EQ(ToString(m.sharded().shardings.at(root).leaves[0], XY()), "[{}, {y}]");
  const Instruction* parameter = call->called()[0]->parameters()[0];
  EXPECT_EQ(ToString(m.sharded().shardings.at(parameter).leaves[0], XY()), "[{}, {y}]");
}

// 20 over x are shards of 5, which y would split into 3 and 2: together they are no eight
// shards of 20, so y stays out of that dimension. It may split shards of 6 into 3 and 3.
TEST(Regions, AxesSplitAShardEvenlyOrNotAtAll) {
  for (const int64_t shard : {5, 6}) {
    ShardedTestModule m;
    Instruction* a = m.Argument(F32({4 * shard}), "[{\"x\", \"y\"}]");
    AddRegion(m, a, F32({shard}), "[{\"x\", ?}]", "{\"x\"}");
    m.Shard();
    const std::string wanted = shard == 5 ? "[{x}]" : "[{x,y}]";
    EXPECT_EQ(m.OfRoot(), wanted);
    const auto& [call, region] = *m.sharded().manual_regions.begin();
    EXPECT_EQ(ToString(region.operands[0], XY()), wanted);
    const Instruction* parameter = call->called()[0]->parameters()[0];
    EXPECT_EQ(ToString(m.sharded().shardings.at(parameter).leaves[0], XY()),
              shard == 5 ? "[{}]" : "[{y}]");
  }
}

TEST(Regions, ShardsMustFit) {
  ShardedTestModule m;
  Instruction* a = m.Argument(F32({8, 8}), "[{}, {}]");
  AddRegion(m, a, F32({4, 4}), "[{\"x\"}, {\"y\"}]", "{\"x\", \"y\"}");
  EXPECT_THAT(m.Error(), HasSubstr("is not made of shards f32[4,4] over x,y"));
}

// The older partitioner's markers, y manual over {devices=[1,2,4]<=[4,2]T(1,0)}.
TEST(Regions, OlderMarkers) {
  ShardedTestModule m;
  const auto tiles = [](Instruction* i, std::vector<int64_t> dims, bool manual) {
    hlo::pb::OpSharding& s = *i->mutable_attrs().mutable_sharding();
    s.set_type(hlo::pb::OpSharding::OTHER);
    for (int64_t dim : dims) s.add_tile_assignment_dimensions(dim);
    for (int64_t dim : {4, 2}) s.add_iota_reshape_dims(dim);
    for (int perm : {1, 0}) s.add_iota_transpose_perm(perm);
    if (manual) {
      s.add_last_tile_dims(hlo::pb::OpSharding::MANUAL);
      s.add_last_tile_dims(hlo::pb::OpSharding::REPLICATED);
    } else {
      s.set_replicate_on_last_tile_dim(true);
    }
    i->mutable_attrs().set_backend_config("unspecified_dims=[0,1]");
  };
  Computation* body = m.module().AddComputation("shmap_body");
  m.Add(body, Opcode::kSine, F32({8, 4}), {m.Param(body, F32({8, 4}))});
  Instruction* a = m.Argument(F32({8, 8}), "[{\"x\"}, {}]");
  Instruction* given = m.Marker("Sharding", F32({8, 8}), {a});
  tiles(given, {1, 2, 4}, false);
  Instruction* in = m.Marker("SPMDFullToShardShape", F32({8, 4}), {given});
  tiles(in, {1, 1, 2, 4}, true);
  Instruction* call = m.Add(Opcode::kCall, F32({8, 4}), {in});
  call->set_called({body});
  Instruction* made = m.Marker("Sharding", F32({8, 4}), {call});
  tiles(made, {1, 1, 2, 4}, true);
  Instruction* out = m.Marker("SPMDShardToFullShape", F32({8, 8}), {made});
  tiles(out, {1, 2, 4}, false);
  m.Shard();
  EXPECT_EQ(m.OfRoot(), "[{x}, {y}]");
  const auto& [region_call, region] = *m.sharded().manual_regions.begin();
  EXPECT_EQ(region.manual_axes, Axes{Y()});
  EXPECT_TRUE(region.partitioned);
  EXPECT_EQ(Count(*m.sharded().module, Opcode::kCustomCall), 0);
}

}  // namespace
}  // namespace tpusim::sharding
