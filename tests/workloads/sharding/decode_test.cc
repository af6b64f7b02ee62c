#include "workloads/sharding/text/decode.h"

#include <google/protobuf/text_format.h>

#include "tests/workloads/sharding/sharding_testing.h"

namespace tpusim::sharding {
namespace {

using hlo::F32;
using ::testing::HasSubstr;

hlo::pb::OpSharding Proto(const std::string& text) {
  hlo::pb::OpSharding proto;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &proto)) << text;
  return proto;
}

// Returns the sharding of an array of the given rank as text, with manual axes behind.
std::string Decoded(const std::string& text, int64_t rank, const Mesh& mesh = XY()) {
  auto decoded = DecodeOpSharding(Proto(text), F32(std::vector<int64_t>(rank, 8)), mesh);
  if (!decoded.ok()) return "error: " + Message(decoded.status());
  const DecodedSharding& one = (*decoded)[0];
  if (!one.known) return "unknown";
  std::string result = ToString(one.sharding, mesh);
  if (!one.manual.empty()) result += " manual={" + ToString(one.manual, mesh) + "}";
  return result;
}

TEST(Decode, Types) {
  EXPECT_EQ(Decoded("type: REPLICATED", 2), "[{}, {}]");
  EXPECT_EQ(Decoded("type: UNKNOWN", 2), "unknown");
  EXPECT_EQ(Decoded("type: MANUAL", 1), "[{}] manual={x,y}");
  EXPECT_EQ(Decoded("type: UNREDUCED", 1), "[{}] unreduced={x,y}");
  EXPECT_THAT(Decoded("type: MAXIMAL tile_assignment_devices: 5", 1), HasSubstr("one device only"));
}

// {devices=[4,1,2]<=[8] last_tile_dim_replicate}: the major 4 of 8 are x.
TEST(Decode, IotaWithReplication) {
  EXPECT_EQ(Decoded("type: OTHER tile_assignment_dimensions: [4,1,2] iota_reshape_dims: 8 "
                    "replicate_on_last_tile_dim: true",
                    2),
            "[{x}, {}]");
}

// {devices=[1,2,4]<=[4,2]T(1,0) last_tile_dim_replicate}: transposed, so y first.
TEST(Decode, IotaWithTranspose) {
  EXPECT_EQ(Decoded("type: OTHER tile_assignment_dimensions: [1,2,4] iota_reshape_dims: [4,2] "
                    "iota_transpose_perm: [1,0] replicate_on_last_tile_dim: true",
                    2),
            "[{}, {y}]");
  EXPECT_EQ(Decoded("type: OTHER tile_assignment_dimensions: 8 iota_reshape_dims: [4,2] "
                    "iota_transpose_perm: [1,0]",
                    1),
            "[{y,x}]");
}

// 2 tiles of 8 devices in a row are the major half of x.
TEST(Decode, TilesMayBePiecesOfAxes) {
  EXPECT_EQ(Decoded("type: OTHER tile_assignment_dimensions: [2,4] iota_reshape_dims: 8", 2),
            "[{x:(1)2}, {x:(2)2,y}]");
}

TEST(Decode, ListOfDevices) {
  EXPECT_EQ(Decoded("type: OTHER tile_assignment_dimensions: [2,4] "
                    "tile_assignment_devices: [0,2,4,6,1,3,5,7]",
                    2),
            "[{y}, {x}]");
  EXPECT_THAT(Decoded("type: OTHER tile_assignment_dimensions: 8 "
                      "tile_assignment_devices: [0,1,2,3,4,5,7,6]",
                      1),
              HasSubstr("no mesh of axes"));
  EXPECT_THAT(
      Decoded("type: OTHER tile_assignment_dimensions: 8 tile_assignment_devices: [0,1]", 1),
      HasSubstr("8 tiles over 2 devices"));
}

// {devices=[1,2,4]<=[4,2]T(1,0) last_tile_dims={manual, replicated}}
TEST(Decode, Subgroups) {
  EXPECT_EQ(Decoded("type: OTHER tile_assignment_dimensions: [1,2,4] iota_reshape_dims: [4,2] "
                    "iota_transpose_perm: [1,0] last_tile_dims: [MANUAL, REPLICATED]",
                    1),
            "[{}] manual={y}");
  EXPECT_EQ(Decoded("type: OTHER tile_assignment_dimensions: [4,2] iota_reshape_dims: 8 "
                    "last_tile_dims: UNREDUCED",
                    1),
            "[{x}] unreduced={y}");
  EXPECT_THAT(Decoded("type: OTHER tile_assignment_dimensions: [4,2] iota_reshape_dims: 8", 1),
              HasSubstr("2 tile dimensions (0 of them subgroups) on a value of 1"));
}

constexpr char kMeshProto[] = "mesh { axes { name: 'x' size: 4 } axes { name: 'y' size: 2 } } ";

TEST(Decode, Named) {
  EXPECT_EQ(
      Decoded(std::string("named_sharding { ") + kMeshProto +
                  "dim_shardings { axes { mesh_axis_index: 1 } is_closed: true } "
                  "dim_shardings { axes { mesh_axis_index: 0 "
                  "sub_axis_info { pre_size: 2 size: 2 } } } "
                  "replicated_axes { mesh_axis_index: 0 sub_axis_info { pre_size: 1 size: 2 } } }",
              2),
      "[{y}, {x:(2)2,?}] replicated={x:(1)2}");
  EXPECT_EQ(Decoded(std::string("named_sharding { ") + kMeshProto +
                        "dim_shardings { is_closed: true } unreduced_axes { mesh_axis_index: 0 } "
                        "manual_axes { mesh_axis_index: 1 } }",
                    1),
            "[{}] unreduced={x} manual={y}");
}

TEST(Decode, NamedOverAnotherViewOfTheMesh) {
  EXPECT_EQ(Decoded("named_sharding { mesh { axes { name: 'all' size: 8 } } "
                    "dim_shardings { axes { mesh_axis_index: 0 } is_closed: true } }",
                    1),
            "[{x,y}]");
  EXPECT_THAT(Decoded("named_sharding { mesh { axes { name: 'all' size: 16 } } "
                      "dim_shardings { axes { mesh_axis_index: 0 } is_closed: true } }",
                      1),
              HasSubstr("not as many devices"));
}

TEST(Decode, TuplesArePerLeaf) {
  const hlo::Shape shape =
      hlo::MakeTupleShape({F32({8}), hlo::MakeTupleShape({F32({8, 8}), F32({})})});
  const std::string tiled = "type: OTHER tile_assignment_dimensions: 8 iota_reshape_dims: 8";
  auto decoded = DecodeOpSharding(
      Proto("type: TUPLE tuple_shardings { " + tiled +
            " } tuple_shardings { type: REPLICATED } tuple_shardings { type: REPLICATED }"),
      shape, XY());
  ASSERT_TRUE(decoded.ok()) << Message(decoded.status());
  ASSERT_EQ(decoded->size(), 3u);
  EXPECT_EQ(ToString((*decoded)[0].sharding, XY()), "[{x,y}]");
  EXPECT_EQ(ToString((*decoded)[1].sharding, XY()), "[{}, {}]");
  // One sharding for all leaves.
  EXPECT_EQ(DecodeOpSharding(Proto("type: REPLICATED"), shape, XY())->size(), 3u);
  EXPECT_FALSE(
      DecodeOpSharding(Proto("type: TUPLE tuple_shardings { type: REPLICATED }"), shape, XY())
          .ok());
}

// Without names the coarsest axes that all shardings are made of: of 8 devices
// one sharding takes the major 4, another one 2 steps of 4: cuts at 8, 4, 2, 1.
TEST(FindMesh, FactorsTileAssignments) {
  hlo::TestModule m;
  hlo::Instruction* a = m.Param(F32({8}));
  hlo::Instruction* b = m.Param(F32({8}));
  m.Add(hlo::Opcode::kAdd, F32({8}), {a, b});
  *a->mutable_attrs().mutable_sharding() = Proto(
      "type: OTHER tile_assignment_dimensions: [4,2] iota_reshape_dims: 8 "
      "replicate_on_last_tile_dim: true");
  *b->mutable_attrs().mutable_sharding() = Proto(
      "type: OTHER tile_assignment_dimensions: [2,4] iota_reshape_dims: 8 "
      "replicate_on_last_tile_dim: true");
  auto table = FindMesh(m.module(), 0);
  ASSERT_TRUE(table.ok()) << Message(table.status());
  EXPECT_EQ(ToString(table->mesh), "mesh['axis_0'=2,'axis_1'=2,'axis_2'=2]");
  EXPECT_THAT(Message(FindMesh(m.module(), 16).status()), HasSubstr("16 partitions"));
}

// A list that is no sub-grid becomes the order of the mesh's devices.
TEST(FindMesh, AListMayBeTheOrderOfDevices) {
  hlo::TestModule m;
  hlo::Instruction* a = m.Param(F32({8, 8}));
  *a->mutable_attrs().mutable_sharding() =
      Proto("type: OTHER tile_assignment_dimensions: [2,2] tile_assignment_devices: [0,1,3,2]");
  auto table = FindMesh(m.module(), 0);
  ASSERT_TRUE(table.ok()) << Message(table.status());
  EXPECT_EQ(ToString(table->mesh), "mesh['axis_0'=2,'axis_1'=2] device_ids=[0,1,3,2]");
  auto decoded = DecodeOpSharding(a->attrs().sharding(), a->shape(), table->mesh);
  ASSERT_TRUE(decoded.ok()) << Message(decoded.status());
  EXPECT_EQ(ToString((*decoded)[0].sharding, table->mesh), "[{axis_0}, {axis_1}]");
}

TEST(FindMesh, DisagreementIsAnError) {
  hlo::TestModule m;
  hlo::Instruction* a = m.Param(F32({8}));
  hlo::Instruction* b = m.Param(F32({8}));
  m.Add(hlo::Opcode::kAdd, F32({8}), {a, b});
  *a->mutable_attrs().mutable_sharding() =
      Proto("type: OTHER tile_assignment_dimensions: 4 iota_reshape_dims: 4");
  *b->mutable_attrs().mutable_sharding() =
      Proto("type: OTHER tile_assignment_dimensions: 8 iota_reshape_dims: 8");
  EXPECT_THAT(Message(FindMesh(m.module(), 0).status()), HasSubstr("over 4 and over 8 devices"));
}

}  // namespace
}  // namespace tpusim::sharding
