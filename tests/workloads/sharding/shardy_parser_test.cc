#include "workloads/sharding/text/shardy_parser.h"

#include "tests/workloads/sharding/sharding_testing.h"

namespace tpusim::sharding {
namespace {

using ::testing::HasSubstr;

std::vector<NamedMesh> Table(const std::string& text) {
  auto table = ParseMeshes(text);
  EXPECT_TRUE(table.ok()) << Message(table.status());
  return table.ok() ? *table : std::vector<NamedMesh>();
}

std::string Parsed(const std::string& sharding,
                   const std::string& meshes = R"({mesh = #sdy.mesh<["x"=4, "y"=2]>})") {
  auto parsed = ParseSharding("#sdy.sharding<" + sharding + ">", XY(), Table(meshes));
  return parsed.ok() ? ToString(*parsed, XY()) : "error: " + Message(parsed.status());
}

TEST(ShardyParser, Meshes) {
  const auto table =
      Table(R"({mesh = #sdy.mesh<["x"=4, "y"=2]>, @"a b" = #sdy.mesh<["x"=2], device_ids=[1, 0]>,)"
            R"( one = #sdy.mesh<[], device_ids=[5]>, empty_mesh = #sdy.mesh<[]>})");
  ASSERT_EQ(table.size(), 4u);
  EXPECT_EQ(table[0].mesh, XY());
  EXPECT_EQ(table[1].name, "a b");
  EXPECT_EQ(table[1].mesh.device_ids, (std::vector<int64_t>{1, 0}));
  EXPECT_TRUE(table[2].maximal);
  EXPECT_EQ(table[3].mesh.size(), 1);
}

TEST(ShardyParser, AllFormsOfDimensions) {
  EXPECT_EQ(Parsed(R"(@mesh, [{"x"}, {}])"), "[{x}, {}]");
  EXPECT_EQ(Parsed(R"(@mesh, [{"y", "x"}, {?}])"), "[{y,x}, {?}]");
  EXPECT_EQ(Parsed(R"(@mesh, [{"x", ?}p1, {"y"}p0])"), "[{x,?}p1, {y}]");
  EXPECT_EQ(Parsed(R"(@mesh, [{"x":(1)2}, {"x":(2)2, ?}])"), "[{x:(1)2}, {x:(2)2,?}]");
  EXPECT_EQ(Parsed(R"(@mesh, [], replicated={"y"}, unreduced={"x"})"),
            "[] replicated={y} unreduced={x}");
}

TEST(ShardyParser, InlinedMesh) {
  EXPECT_EQ(Parsed(R"(mesh<["x"=4, "y"=2]>, [{"x"}])"), "[{x}]");
  EXPECT_EQ(Parsed(R"(#sdy.mesh<["x"=4, "y"=2]>, [{"y"}])"), "[{y}]");
}

// a of 2 is the major half of x; b of 4 is the rest of x and y.
TEST(ShardyParser, AnotherViewOfTheMesh) {
  const std::string meshes =
      R"({mesh = #sdy.mesh<["x"=4, "y"=2]>, other = #sdy.mesh<["a"=2, "b"=4]>,)"
      R"( flat = #sdy.mesh<["all"=8], device_ids=[0, 2, 4, 6, 1, 3, 5, 7]>})";
  EXPECT_EQ(Parsed(R"(@other, [{"a"}, {"b"}])", meshes), "[{x:(1)2}, {x:(2)2,y}]");
  EXPECT_EQ(Parsed(R"(@other, [{"b":(2)2}])", meshes), "[{y}]");
  // The flat order counts x faster than y: y major, x minor.
  EXPECT_EQ(Parsed(R"(@flat, [{"all"}])", meshes), "[{y,x}]");
}

TEST(ShardyParser, OnePerValue) {
  const auto table = Table(R"({mesh = #sdy.mesh<["x"=4, "y"=2]>})");
  auto parsed = ParseShardings(
      R"(#sdy.sharding_per_value<[<@mesh, [{"x"}]>, <@mesh, [{}, {"y"}]>]>)", XY(), table);
  ASSERT_TRUE(parsed.ok()) << Message(parsed.status());
  ASSERT_EQ(parsed->size(), 2u);
  EXPECT_EQ(ToString((*parsed)[1], XY()), "[{}, {y}]");
  auto axes = ParseManualAxes(R"(#sdy<manual_axes{"y", "x"}>)", XY(), table);
  ASSERT_TRUE(axes.ok());
  EXPECT_EQ(*axes, (Axes{Y(), X()}));
}

TEST(ShardyParser, ErrorsSayWhatWasExpected) {
  EXPECT_THAT(Parsed(R"(@mesh, [{"z"}])"), HasSubstr("an axis of mesh['x'=4,'y'=2] instead of"));
  EXPECT_THAT(Parsed(R"(@nowhere, [{"x"}])"), HasSubstr("@nowhere"));
  EXPECT_THAT(Parsed(R"(@mesh, [{"x"}, {"x"}])"), HasSubstr("every axis at most once"));
  EXPECT_THAT(Parsed(R"(@mesh, [{"x":(3)2}])"), HasSubstr("sizes that divide"));
  EXPECT_THAT(Parsed(R"(@mesh, [{"x"})"), HasSubstr("expected"));
  EXPECT_THAT(Parsed(R"(@one, [])", R"({one = #sdy.mesh<[], device_ids=[5]>})"),
              HasSubstr("one device only"));
  EXPECT_EQ(Parsed(R"(@mesh, [], unreduced=max{"x"})"), "[] unreduced=max{x}");
  EXPECT_EQ(Parsed(R"(@mesh, [], unreduced=min{"x"})"), "[] unreduced=min{x}");
  EXPECT_EQ(Parsed(R"(@mesh, [], unreduced=sum{"x"})"), "[] unreduced={x}");
}

}  // namespace
}  // namespace tpusim::sharding
