// Scores of measured kernels, by hand.
#include "sim/results/measured/kernel_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs/status_macros.h"

namespace tpusim::results {
namespace {

using ::testing::HasSubstr;

constexpr char kRows[] =
    R"({"chip": "tpu7x", "op": "dot_product_attention", "args": {"mask": {"is_causal": true}}, )"
    R"("config": {}, "ms": 2, "peak_mb": 58.394624}
{"chip": "tpu_v5", "op": "ragged_dot", "args": {}, "ms": 0.5, "peak_mb": 112.50247192382812}

{"chip": "tpu_v6_lite", "op": "dot_product_attention", "args": {"bias": "f32[8]"}, "ms": 1, )"
    R"("peak_mb": 1}
)";

TEST(KernelRowsTest, RowsOfCaches) {
  const auto rows = ParseKernelRows(kRows);
  ASSERT_TRUE(rows.ok()) << rows.status();
  ASSERT_EQ(rows->size(), 3U);
  EXPECT_EQ(rows->at(0).group, "attention, XLA, causal");
  EXPECT_EQ(rows->at(0).chip, "v7x");
  EXPECT_EQ(rows->at(0).time, FromSeconds(2e-3));
  EXPECT_EQ(rows->at(0).peak, Bytes(58'394'624));   // 10^6 bytes
  EXPECT_EQ(rows->at(1).peak, Bytes(117'967'392));  // 2^20 bytes
  EXPECT_EQ(rows->at(1).number, 1);
  EXPECT_EQ(rows->at(2).group, "attention, XLA, bias and mask");
}

TEST(KernelRowsTest, RowsThatAreNone) {
  EXPECT_EQ(Message(ParseKernelRows("").status()), "no row");
  EXPECT_EQ(Message(ParseKernelRows("{}\n").status()),
            "row 0: is no object with chip, op, args, ms and peak_mb");
  EXPECT_THAT(
      Message(ParseKernelRows(
                  R"({"chip": "tpu_v9", "op": "ragged_dot", "args": {}, "ms": 1, "peak_mb": 1})")
                  .status()),
      HasSubstr("row 0: a chip of another name: tpu_v9"));
}

KernelOutcome Outcome(const std::string& chip, double measured, double simulated, int64_t peak) {
  KernelOutcome outcome;
  outcome.row.chip = chip;
  outcome.row.group = "grouped matmul, XLA";
  outcome.row.time = FromSeconds(measured);
  outcome.row.peak = Bytes(100);
  outcome.time = FromSeconds(simulated);
  outcome.peak = Bytes(peak);
  return outcome;
}

TEST(KernelRowsTest, Scores) {
  std::vector<KernelOutcome> outcomes = {Outcome("v7x", 1, 0.5, 100), Outcome("v7x", 1, 1.1, 120),
                                         Outcome("v7x", 2, 2, 90), Outcome("v5p", 1, 0.01, 100)};
  outcomes.emplace_back(outcomes[0]).error = "no rule";
  const std::vector<KernelScore> scores = ScoreKernels(outcomes);
  ASSERT_EQ(scores.size(), 3U);
  EXPECT_EQ(scores[0].chip, "v5p");
  const KernelScore& v7x = scores[1];
  EXPECT_EQ(v7x.rows, 3);
  EXPECT_EQ(v7x.failed, 1);
  EXPECT_DOUBLE_EQ(v7x.median, 1);
  EXPECT_NEAR(v7x.mean_error, (0.5 + 0.1 + 0) / 3, 1e-9);
  EXPECT_NEAR(v7x.signed_error, (-0.5 + 0.1 + 0) / 3, 1e-9);
  EXPECT_NEAR(v7x.ninetieth, 0.5, 1e-9);
  EXPECT_NEAR(v7x.peak_error, (0 + 0.2 + 0.1) / 3, 1e-9);
  // The densely expanded rows of v5p count in no mean.
  EXPECT_EQ(scores[2].rows, 3);
  EXPECT_THAT(FormatKernels(outcomes, 160), HasSubstr("0 of v7x did not run: no rule"));
}

}  // namespace
}  // namespace tpusim::results
