#include "sim/results/report/error_bar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "configs/embedded_files.h"
#include "sim/results/report/report.h"
#include "tests/sim/results/sample.h"

namespace tpusim::results {
namespace {

using ::testing::HasSubstr;

OpReport Op(std::string category, int64_t count, std::string scope = "jit(f)/layer") {
  OpReport op;
  op.category = std::move(category);
  op.count = count;
  op.scope = std::move(scope);
  return op;
}

TEST(ErrorBarTest, TheKindIsWhatTheProgramDoes) {
  Report r;
  r.step_time = Microseconds(100);
  EXPECT_EQ(KindOf(r), "");
  r.exposed = Microseconds(51);
  EXPECT_EQ(KindOf(r), "collective");
  r.ops = {Op("convolution fusion", 1), Op("loop fusion", 9)};
  EXPECT_EQ(KindOf(r), "matmul");  // of a vector, by the vector units
  // A kernel by hand counts if it computes, and something keeps the matrix slots busy.
  r.ops[0].category = "custom-call";
  r.mxu_busy = Microseconds(1);
  EXPECT_EQ(KindOf(r), "collective");
  r.ops[0].flops = Flops(9);
  EXPECT_EQ(KindOf(r), "matmul");
  r.mxu_busy = Picoseconds(0);
  EXPECT_EQ(KindOf(r), "collective");
  r.ops[0].category = "convolution fusion";
  r.ops[0].count = 2;  // one in a loop
  EXPECT_EQ(KindOf(r), "inference");
  r.ops.push_back(Op("loop fusion", 1, "jit(f)/transpose(jvp(layer))/mul"));
  EXPECT_EQ(KindOf(r), "training");
}

// The figures of the file, counted here in another way.
TEST(ErrorBarTest, MeansAreThoseOfTheFile) {
  const auto& files = configs::EmbeddedFiles("validation");
  ASSERT_EQ(files.size(), 1u);
  const auto json = nlohmann::json::parse(files[0].text);
  int64_t rows = 0;
  double sum = 0, largest = 0;
  for (const auto& row : json["rows"]) {
    if (row["chip"] != "v5e" || row["kind"] != "training") continue;
    ++rows;
    sum += std::abs(row["error"].get<double>());
    largest = std::max(largest, std::abs(row["error"].get<double>()));
  }
  ASSERT_GT(rows, 1);
  const absl::StatusOr<configs::Config> config = configs::LoadConfig("v5e-4x2", {});
  ASSERT_TRUE(config.ok());
  Report r;
  r.ops = {Op("fusion", 1, "transpose(f)")};
  const ErrorBar bar = ErrorBarOf(*config, r);
  EXPECT_EQ(bar.chip, "v5e");
  EXPECT_EQ(bar.rows, rows);
  EXPECT_DOUBLE_EQ(bar.mean, sum / static_cast<double>(rows));
  EXPECT_DOUBLE_EQ(std::abs(bar.worst), largest);
  EXPECT_THAT(bar.text, HasSubstr("on v5e training: mean error "));
  EXPECT_THAT(bar.text, HasSubstr("(" + bar.worst_row + ") over 3 rows"));
}

TEST(ErrorBarTest, SaysWhyThereIsNone) {
  Report r;
  const auto text = [&r](const std::string& slice, const std::vector<std::string>& set = {}) {
    const ErrorBar bar = ErrorBarOf(*configs::LoadConfig(slice, set), r);
    EXPECT_EQ(bar.rows, 0);
    return bar.text;
  };
  EXPECT_EQ(text("v5e-4x2"), "no: nobody measured this kind of program");
  r.ops = {Op("fusion", 1, "transpose(f)")};
  EXPECT_EQ(text("v7x-2x2x1"),
            "no: there is no independent measurement of a train step on v7x");
  EXPECT_EQ(text("v5e-4x2", {"chip.clock_hz=2x"}), "no: parameters of the chip are set");
}

}  // namespace
}  // namespace tpusim::results
