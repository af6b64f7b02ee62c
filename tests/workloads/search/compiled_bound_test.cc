#include "workloads/search/compiled_bound.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs/config.h"
#include "configs/status_macros.h"
#include "models/timing/kernel_timing.h"
#include "workloads/compiler/session.h"
#include "workloads/hlo/io/text_parser.h"
#include "workloads/kernels/tiling/kernel_library.h"

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
  compiler::SliceCache cache(configs::LoadConfig("v5e-1x1", {}).value());
  cost::ChipCostModel costs(cache.target(), cache.Costs({0}, {}),
                            [](const hlo::Instruction&) -> absl::StatusOr<int64_t> { return 1; });
  const Picoseconds bound = CompiledBound(module, cache.target(), costs).value();
  const Picoseconds kernel = costs.kernels().CostOf(*module.entry()->root()).value().time;
  EXPECT_LE(bound, kernel);
  // Nor is it of no use: what is written alone takes most of the time.
  EXPECT_GT(bound.value(), kernel.value() / 2);
}

// Synchronous operations add up; an all-gather may run beside the product.
TEST(SimplifiedBound, AddsWhatIsSynchronous) {
  const auto bound_of = [](const std::string& exchange) {
    const auto parsed = hlo::ParseHloText(R"(HloModule exchange
add { a = bf16[] parameter(0)
b = bf16[] parameter(1)
ROOT sum = bf16[] add(a, b) }
ENTRY main {
  x = bf16[2048,2048]{1,0} parameter(0)
  y = bf16[2048,2048]{1,0} dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
)" + exchange + "}");
    EXPECT_TRUE(parsed.ok()) << parsed.status();
    compiler::SliceCache cache(configs::LoadConfig("v5e-2x2", {}).value());
    cost::ChipCostModel costs(cache.target(), cache.Costs({0, 1, 2, 3}, {}),
                              [](const hlo::Instruction&) -> absl::StatusOr<int64_t> { return 1; });
    return ToSeconds(SimplifiedBound(*parsed->module, cache.target(), costs).value());
  };
  const configs::ChipParams chip = configs::LoadConfig("v5e-2x2", {}).value().chip;
  const double product =
      2.0 * 2048 * 2048 * 2048 /
      (chip.MxuPeak().value() * timing::SustainedShare(chip.mxu, isa::NumberFormat::kBf16));
  const double none = bound_of("ROOT r = bf16[2048,2048]{1,0} copy(y)");
  EXPECT_NEAR(none / product, 1, 1e-6);
  // 8 MiB: each of four devices sends 3/4 of it twice, over two links.
  const double sum = bound_of(
      "ROOT r = bf16[2048,2048]{1,0} all-reduce(y), replica_groups={{0,1,2,3}}, to_apply=add");
  const double link = chip.ici.link_bytes_per_second.value();
  EXPECT_NEAR((sum - none) * link * 2 / (2 * 0.75 * 2048 * 2048 * 2), 1, 1e-3);
  const double gather = bound_of(
      "ROOT r = bf16[8192,2048]{1,0} all-gather(y), replica_groups={{0,1,2,3}}, dimensions={0}");
  EXPECT_NEAR(gather * link * 2 / (3.0 * 2048 * 2048 * 2), 1, 1e-3);
}

}  // namespace
}  // namespace tpusim::search
