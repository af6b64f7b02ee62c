#include "workloads/search/compiled_bound.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs/config.h"
#include "configs/status_macros.h"
#include "workloads/compiler/compile.h"
#include "workloads/hlo/io/text_parser.h"
#include "workloads/kernels/kernel_library.h"

namespace tpusim::search {
namespace {

// Heads of 64 columns take half of the lanes each; the kernel of the product writes them as one
// matrix of 1024 columns. 205 MB are larger than VMEM.
TEST(CompiledBound, OfAProductIsNotAboveItsKernel) {
  const auto parsed = hlo::ParseHloText(R"(HloModule heads
ENTRY main {
  x = bf16[100352,256]{1,0} parameter(0)
  w = bf16[256,16,64]{2,1,0} parameter(1)
  ROOT heads = bf16[100352,16,64]{2,1,0} dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
})");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  const hlo::Module& module = *parsed->module;
  compiler::Common common(configs::LoadConfig("v5e-1x1", {}).value());
  cost::ChipCostModel costs(common.target(), common.Costs({0}, {}),
                            [](const hlo::Instruction&) -> absl::StatusOr<int64_t> { return 1; });
  const Picoseconds bound = CompiledBound(module, common.target(), costs).value();
  const Picoseconds kernel = common.kernels()->CostOf(*module.entry()->root()).value().time;
  EXPECT_LE(bound, kernel);
  // Nor is it of no use: what is written alone takes most of the time.
  EXPECT_GT(bound.value(), kernel.value() / 2);
}

}  // namespace
}  // namespace tpusim::search
