#include "workloads/kernels/view/ragged_tiling.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "configs/config.h"
#include "tests/workloads/hlo/hlo_test_util.h"
#include "workloads/hlo/ir/ragged.h"

namespace tpusim::kernels {
namespace {

using hlo::MakeShape;
using hlo::Opcode;
using hlo::PrimitiveType;

hlo::Instruction* RaggedDot(hlo::TestModule& m, int64_t rows, int64_t depth, int64_t columns,
                            int64_t groups, bool turned = false) {
  hlo::Instruction* lhs = m.Param(MakeShape(PrimitiveType::kBf16, {rows, depth}));
  hlo::Instruction* rhs = m.Param(
      turned ? MakeShape(PrimitiveType::kBf16, {groups, columns, depth})
             : MakeShape(PrimitiveType::kBf16, {groups, depth, columns}));
  hlo::Instruction* sizes = m.Param(MakeShape(PrimitiveType::kS32, {groups}));
  hlo::Instruction* dot = m.Add(Opcode::kRaggedDot,
                                MakeShape(PrimitiveType::kBf16, {rows, columns}), {lhs, rhs, sizes});
  auto* ragged = dot->mutable_attrs().mutable_ragged_dot_dimension_numbers();
  ragged->mutable_dot_dimension_numbers()->add_lhs_contracting_dimensions(1);
  ragged->mutable_dot_dimension_numbers()->add_rhs_contracting_dimensions(turned ? 2 : 1);
  ragged->add_lhs_ragged_dimensions(0);
  ragged->add_rhs_group_dimensions(0);
  return dot;
}

// `ragged_dot_tiling` as libtpu 0.0.42.1 writes it.
TEST(RaggedTiling, TilesAreThoseOfTheCompiler) {
  struct Case {
    std::string slice;
    int64_t rows, depth, columns, groups;
    int64_t tile_rows, tile_depth, tile_columns;
    bool turned = false;
  };
  const std::vector<Case> cases = {
      {"v7x-1x1x1", 131072, 512, 7168, 256, 256, 512, 4608},
      {"v7x-1x1x1", 131072, 7168, 512, 256, 256, 7168, 512},
      {"v7x-1x1x1", 262144, 1024, 7168, 256, 256, 1024, 3328},
      {"v7x-1x1x1", 131072, 2048, 7168, 128, 256, 2048, 1792, true},
      {"v6e-1x1", 524288, 4096, 1536, 128, 256, 4096, 1024},
      {"v6e-1x1", 524288, 1536, 4096, 128, 256, 1536, 2304},
      {"v6e-1x1", 8, 4096, 4096, 8, 8, 4096, 1280},
      {"v6e-1x1", 8192, 14336, 4096, 8, 256, 11776, 256},
      {"v5p-1x1x1", 131072, 512, 7168, 256, 128, 512, 2176},
      {"v5e-1x1", 131072, 2048, 768, 128, 128, 2048, 640},
      {"v5e-1x1", 8192, 14336, 4096, 8, 128, 7936, 128},
  };
  for (const Case& c : cases) {
    const configs::Config config = configs::LoadConfig(c.slice, {}).value();
    const target::Target target(config);
    hlo::TestModule m;
    const auto tiling =
        RaggedTilingOf(*RaggedDot(m, c.rows, c.depth, c.columns, c.groups, c.turned), target);
    ASSERT_TRUE(tiling.has_value());
    EXPECT_EQ(tiling->rows, c.tile_rows) << c.slice << " " << c.depth;
    EXPECT_EQ(tiling->depth, c.tile_depth) << c.slice << " " << c.depth;
    EXPECT_EQ(tiling->columns, c.tile_columns) << c.slice << " " << c.depth;
  }
}

TEST(RaggedTiling, ATileThatGroupsShareIsThereForEach) {
  const configs::Config config = configs::LoadConfig("v6e-1x1", {}).value();
  const target::Target target(config);
  hlo::TestModule m;
  hlo::Instruction* dot = RaggedDot(m, 1024, 512, 512, 4);
  EXPECT_EQ(RaggedTilingOf(*dot, target)->steps, 4 + 3);
  hlo::SetRaggedSizes(dot, {256, 256, 256, 256});  // as if they were not stated
  EXPECT_EQ(RaggedTilingOf(*dot, target)->steps, 4 + 3);
  hlo::SetRaggedSizes(dot, {512, 0, 256, 256});
  EXPECT_EQ(RaggedTilingOf(*dot, target)->steps, 4);
  EXPECT_EQ(RaggedTilingOf(*dot, target)->groups, 3);
  hlo::SetRaggedSizes(dot, {300, 10, 0, 0});
  EXPECT_EQ(RaggedTilingOf(*dot, target)->steps, 3);
  EXPECT_EQ(RaggedTilingOf(*dot, target)->tiles, 2);
}

}  // namespace
}  // namespace tpusim::kernels
