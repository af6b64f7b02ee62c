#include "hlo_test_util.h"
#include "workloads/hlo/io/sharding_text.h"
#include "workloads/hlo/io/text_parser.h"

namespace tpusim::hlo {
namespace {

using ::testing::HasSubstr;

// A module with something of everything, against its text.
TEST(PrinterTest, Golden) {
  TestModule t;
  Computation* reducer = t.Reducer(Opcode::kAdd);
  Instruction* a = t.Param(MakeShape(PrimitiveType::kBf16, {8, 16}));
  Instruction* b = t.Param(MakeShape(PrimitiveType::kBf16, {16, 4}));
  auto& sharding = *a->mutable_attrs().mutable_sharding();
  sharding.set_type(pb::OpSharding::OTHER);
  for (int d : {4, 1, 2}) sharding.add_tile_assignment_dimensions(d);
  sharding.add_iota_reshape_dims(8);
  sharding.set_replicate_on_last_tile_dim(true);
  SetFrontendAttribute(a, "xla.sdy.sharding", "#sdy.sharding<@mesh, [{\"x\"}, {}]>");
  Instruction* dot = t.Add(Opcode::kDot, F32({8, 4}), {a, b});
  SetDotDims(dot, {{1}, {0}, {}, {}});
  pb::OpMetadata& metadata = *dot->mutable_attrs().mutable_metadata();
  metadata.set_op_name("jit(f)/dot_general");
  metadata.set_source_file("f.py");
  metadata.set_source_line(3);
  Instruction* zero = AddConstant(t.entry(), PrimitiveType::kF32, 0.5);
  Instruction* sum = t.Add(Opcode::kReduce, F32({8}), {dot, zero});
  SetDimensions(sum, {1});
  sum->set_called({reducer});
  Instruction* slice = t.Add(Opcode::kSlice, F32({2}), {sum});
  SetSlice(slice, {{1, 5, 2}});
  Instruction* all = t.Add(Opcode::kAllReduce, F32({2}), {slice});
  all->set_called({reducer});
  all->mutable_attrs().set_channel_id(1);
  all->mutable_attrs().set_use_global_device_ids(true);
  SetReplicaGroups(all, {{0, 1}, {2, 3}});
  all->AddControlPredecessor(dot);
  auto* alias = t.module().mutable_fields().mutable_input_output_alias()->add_entries();
  alias->set_parameter_number(1);
  alias->set_kind(pb::HloInputOutputAliasProto::MAY_ALIAS);
  ASSERT_EQ(Message(Verify(t.module())), "");
  EXPECT_EQ(ToString(t.module()), R"(HloModule test, input_output_alias={ {}: (1, {}, may-alias) }

%reducer (p: f32[], p.1: f32[]) -> f32[] {
  %p = f32[] parameter(0)
  %p.1 = f32[] parameter(1)
  ROOT %add = f32[] add(%p, %p.1)
}

ENTRY %main (p.2: bf16[8,16], p.3: bf16[16,4]) -> f32[2] {
  %p.2 = bf16[8,16]{1,0} parameter(0), sharding={devices=[4,1,2]<=[8] last_tile_dim_replicate}, frontend_attributes={xla.sdy.sharding="#sdy.sharding<@mesh, [{\"x\"}, {}]>"}
  %p.3 = bf16[16,4]{1,0} parameter(1)
  %dot = f32[8,4]{1,0} dot(%p.2, %p.3), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="jit(f)/dot_general" source="f.py:3"}
  %constant = f32[] constant(0.5)
  %reduce = f32[8]{0} reduce(%dot, %constant), dimensions={1}, to_apply=%reducer
  %slice = f32[2]{0} slice(%reduce), slice={[1:5:2]}
  ROOT %all-reduce = f32[2]{0} all-reduce(%slice), channel_id=1, replica_groups={{0,1},{2,3}}, use_global_device_ids=true, to_apply=%reducer, control-predecessors={%dot}
}
)");
}

TEST(PrinterTest, Literals) {
  TestModule t;
  const auto text = [](const Instruction* i) { return ToString(*i); };
  EXPECT_THAT(text(AddIntConstant(t.entry(), PrimitiveType::kS32, -8)),
              HasSubstr("s32[] constant(-8)"));
  EXPECT_THAT(text(AddIntConstant(t.entry(), PrimitiveType::kPred, 1)),
              HasSubstr("pred[] constant(true)"));
  EXPECT_THAT(text(AddLiteral(t.entry(), MakeIntVectorLiteral(PrimitiveType::kS32, {1, 2}))),
              HasSubstr("s32[2]{0} constant({1, 2})"));
  EXPECT_THAT(text(AddLiteral(t.entry(),
                              MakeIntVectorLiteral(PrimitiveType::kS32, std::vector<int64_t>(17)))),
              HasSubstr("constant({...})"));
}

TEST(PrinterTest, ExportedOps) {
  const auto text = [](const std::string& file) { return ToString(*Load(DataFile(file))); };
  EXPECT_THAT(text("convolution.pb"),
              HasSubstr("dim_labels=bf01_oi01->bf01, feature_group_count=2, window={size=3x3 "
                        "stride=2x1 pad=0_1x2_2 rhs_dilate=1x2}"));
  EXPECT_THAT(text("embedding_gradient.pb"),
              HasSubstr("offset_dims={2}, collapsed_slice_dims={0}, start_index_map={0}, "
                        "index_vector_dim=2, slice_sizes={1,64}"));
  EXPECT_THAT(text("nested_loops.pb"), HasSubstr("condition=%region"));
  EXPECT_THAT(text("branches.pb"), HasSubstr("branch_computations={%"));
  EXPECT_THAT(text("fft.pb"), HasSubstr("fft_type=FFT, fft_length={16,32}"));
  EXPECT_THAT(text("sort_topk.pb"), HasSubstr("k=8, largest=true"));
  // In the order of the file: 0 -> 1 -> 2 along x, first for y = 0, then for y = 1.
  EXPECT_THAT(text("collectives.pb"), HasSubstr("source_target_pairs={{0,2},{2,4},{1,3},{3,5}}"));
  EXPECT_THAT(text("scan_gradient_compiled.pb"), HasSubstr("kind=kLoop, calls=%"));
}

TEST(ShardingTextTest, Encodings) {
  pb::OpSharding s;
  EXPECT_EQ(ShardingText(s), "{replicated}");
  s.set_type(pb::OpSharding::MAXIMAL);
  s.add_tile_assignment_devices(5);
  EXPECT_EQ(ShardingText(s), "{maximal device=5}");
  s.set_type(pb::OpSharding::OTHER);
  s.add_tile_assignment_devices(6);
  s.add_tile_assignment_dimensions(2);
  EXPECT_EQ(ShardingText(s), "{devices=[2]5,6}");
  s.clear_tile_assignment_devices();
  s.add_tile_assignment_dimensions(4);
  s.add_iota_reshape_dims(4);
  s.add_iota_reshape_dims(2);
  s.add_iota_transpose_perm(1);
  s.add_iota_transpose_perm(0);
  s.add_last_tile_dims(pb::OpSharding::MANUAL);
  EXPECT_EQ(ShardingText(s), "{devices=[2,4]<=[4,2]T(1,0) last_tile_dims={manual}}");
  pb::OpSharding tuple;
  tuple.set_type(pb::OpSharding::TUPLE);
  *tuple.add_tuple_shardings() = s;
  tuple.add_tuple_shardings()->set_type(pb::OpSharding::UNREDUCED);
  EXPECT_EQ(ShardingText(tuple),
            "{{devices=[2,4]<=[4,2]T(1,0) last_tile_dims={manual}}, {unreduced}}");
  pb::OpSharding v3;
  pb::NamedShardingProto& named = *v3.mutable_named_sharding();
  for (const auto& [name, size] : std::vector<std::pair<std::string, int>>{{"a", 2}, {"b", 4}}) {
    auto* axis = named.mutable_mesh()->add_axes();
    axis->set_name(name);
    axis->set_size(size);
  }
  auto* first = named.add_dim_shardings();
  first->add_axes();
  first->set_is_closed(true);
  auto* sub = named.add_dim_shardings()->add_axes();
  sub->set_mesh_axis_index(1);
  sub->mutable_sub_axis_info()->set_pre_size(2);
  sub->mutable_sub_axis_info()->set_size(2);
  EXPECT_EQ(ShardingText(v3), "{mesh['a'=2,'b'=4], [{'a'}, {'b':(2)2, ?}]}");
}

TEST(PrinterTest, NamesOfFilesThatWouldEndInTextAreEscaped) {
  // A file may name an instruction "p 1 " and a computation "f(x)".
  pb::HloModuleProto proto;
  proto.set_name("a module");
  proto.set_entry_computation_id(1);
  pb::HloComputationProto& entry = *proto.add_computations();
  entry.set_id(1);
  entry.set_root_id(1);
  entry.set_name("f(x)");
  pb::HloInstructionProto& parameter = *entry.add_instructions();
  parameter.set_id(1);
  parameter.set_name("p 1 ");
  parameter.set_opcode("parameter");
  parameter.mutable_shape()->set_element_type(pb::F32);
  const auto module = FromProto(proto);
  ASSERT_TRUE(module.ok()) << module.status();
  const std::string text = ToString(**module);
  EXPECT_THAT(text, HasSubstr(R"(HloModule a\x20module)"));
  EXPECT_THAT(text, HasSubstr(R"(ENTRY %f\x28x\x29 (p\x201\x20: f32[]) -> f32[] {)"));
  EXPECT_THAT(text, HasSubstr(R"(ROOT %p\x201\x20 = f32[] parameter(0))"));
  const auto parsed = ParseHloText(text);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(ToString(*parsed->module), text);
}

}  // namespace
}  // namespace tpusim::hlo
