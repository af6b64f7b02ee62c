#include "sim/results/measured/validation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs/status_macros.h"

namespace tpusim::results {
namespace {

constexpr size_t kWidth = 132;

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kRow[] =
    R"({"id":"M1","name":"a product","chip":"v5e","kind":"matmul","workload":"m.pb",)"
    R"("quantity":"step time","seconds":2e-5,"role":"validation","reproducibility":"A",)"
    R"("source":"a book"})";

std::string File(const std::string& rows, const std::string& pending = "") {
  return R"({"schema":"tpusim.measurements/1","measurements":[)" + rows + R"(],"pending":[)" +
         pending + "]}";
}

std::string ErrorOf(const std::string& text) { return Message(ParseMeasurements(text).status()); }

Outcome Of(const std::string& id, MeasurementRole role, double measured_us, double simulated_us) {
  Outcome outcome;
  outcome.measurement.id = id;
  outcome.measurement.chip = "v5e";
  outcome.measurement.kind = "matmul";
  outcome.measurement.quantity = "step time";
  outcome.measurement.reproducibility = "A";
  outcome.measurement.role = role;
  outcome.measurement.measured = FromSeconds(measured_us * 1e-6);
  outcome.simulated = FromSeconds(simulated_us * 1e-6);
  return outcome;
}

TEST(ValidationTest, ReadsRowsAndWhatIsPending) {
  const auto parsed = ParseMeasurements(
      File(kRow, R"({"id":"T1","chip":"v4","what":"training","measured":"1 s","why":"later",)"
                 R"("source":"a script"})"));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  ASSERT_EQ(parsed->rows.size(), 1u);
  EXPECT_EQ(parsed->rows[0].measured, Microseconds(20));
  EXPECT_EQ(parsed->rows[0].role, MeasurementRole::kValidation);
  ASSERT_EQ(parsed->pending.size(), 1u);
  EXPECT_EQ(parsed->pending[0].why, "later");
}

TEST(ValidationTest, WrongFilesAreToldWhere) {
  EXPECT_THAT(ErrorOf("{"), HasSubstr("tpusim.measurements/1"));
  EXPECT_THAT(ErrorOf(R"({"schema":"tpusim.report/1"})"), HasSubstr("tpusim.measurements/1"));
  EXPECT_THAT(ErrorOf(R"({"schema":"tpusim.measurements/1","measurements":3})"),
              HasSubstr("\"measurements\" is not a list"));
  EXPECT_THAT(ErrorOf(File("7")), HasSubstr("measurement 0 is not an object"));
  EXPECT_THAT(ErrorOf(File(std::string(kRow) + ",{}")),
              HasSubstr("measurement 1: \"id\" is missing"));
  const auto with = [](const std::string& from, const std::string& to) {
    std::string row = kRow;
    return File(row.replace(row.find(from), from.size(), to));
  };
  EXPECT_THAT(ErrorOf(with("2e-5", "-1")), HasSubstr("\"seconds\" is not a number"));
  EXPECT_THAT(ErrorOf(with("2e-5", "\"x\"")), HasSubstr("\"seconds\" is not a number"));
  EXPECT_THAT(ErrorOf(with("\"validation\"", "\"guess\"")), HasSubstr("not one of calibration"));
  EXPECT_THAT(ErrorOf(with("\"v5e\"", "5")), HasSubstr("\"chip\" is not a text"));
}

std::string WithCategories(const std::string& categories) {
  std::string row = kRow;
  row.replace(row.find("matmul"), 6, "training");
  row.replace(row.find(R"("role")"), 0, R"("peak_hbm_gib":2,"categories_ms":)" + categories + ",");
  return File(row);
}

TEST(ValidationTest, CategoriesOfAStepAreComparedOneByOne) {
  const auto parsed = ParseMeasurements(WithCategories(
      R"({"loop fusion":8,"convolution fusion":10,"exposed all-gather":2,"exposed copy":1})"));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  const Measurement& measured = parsed->rows[0];
  ASSERT_EQ(measured.categories.size(), 4u);
  EXPECT_EQ(measured.categories[0].time, Microseconds(8000));
  EXPECT_EQ(measured.peak_hbm, Bytes(int64_t{2} << 30));

  Report report;
  report.step_time = Microseconds(18'000);
  const auto add = [&report](const char* name, int64_t us) {
    RollupRow row;
    row.name = name;
    row.time = Microseconds(us);
    report.rollups.Of(RollupBy::kXprof).push_back(row);
  };
  add("loop fusion", 6000);
  add("convolution fusion", 10'500);
  add("copy-done", 1500);
  add("copy-start", 200);
  add("copy of something else", 700);
  const absl::StatusOr<Outcome> outcome = OutcomeOf(report, measured);
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_THAT(outcome->categories, ::testing::ElementsAre(Microseconds(6000), Microseconds(10'500),
                                                          Picoseconds(0), Microseconds(1700)));
  // Differences beside the measured step of 20 us.
  const std::string text = FormatValidation({*outcome}, {}, 200);
  EXPECT_THAT(text, ContainsRegex("loop fusion +8.000 ms +6.000 ms +-25.0% +-10000.0%"));
  EXPECT_THAT(text, ContainsRegex("convolution fusion +10.00 ms +10.50 ms +\\+5.0%"));
  EXPECT_THAT(text, ContainsRegex("exposed all-gather +2.000 ms +0 ns +-100.0%"));
}

TEST(ValidationTest, WrongCategoriesAreToldWhere) {
  EXPECT_THAT(ErrorOf(WithCategories("3")), HasSubstr("\"categories_ms\" is not an object"));
  EXPECT_THAT(ErrorOf(WithCategories(R"({"loop fusion":-1})")),
              HasSubstr("not a number of milliseconds above 0"));
}

TEST(ValidationTest, NothingIsFittedToAStepOfAModel) {
  const auto row = [](const std::string& kind, const std::string& role) {
    std::string text = kRow;
    text.replace(text.find("matmul"), 6, kind);
    text.replace(text.find(R"("validation")"), 12, '"' + role + '"');
    return File(text);
  };
  for (const char* kind : {"training", "inference"}) {
    EXPECT_THAT(ErrorOf(row(kind, "calibration")),
                HasSubstr(std::string("M1 is of kind \"") + kind + "\" and may not be"));
    EXPECT_TRUE(ParseMeasurements(row(kind, "validation")).ok());
  }
  EXPECT_TRUE(ParseMeasurements(row("matmul", "calibration")).ok());
}

TEST(ValidationTest, AQuantityIsTheStepOrOneCollective) {
  Report report;
  report.step_time = Microseconds(100);
  CollectiveReport gather;
  gather.kind = "all-gather";
  gather.count = 3;
  gather.total = Microseconds(30);
  report.collectives = {gather};
  Measurement m;
  m.quantity = "step time";
  EXPECT_EQ(OutcomeOf(report, m).value().simulated, Microseconds(100));
  m.quantity = "all-gather";
  EXPECT_EQ(OutcomeOf(report, m).value().simulated, Microseconds(10));
  m.quantity = "all-reduce";
  EXPECT_THAT(Message(OutcomeOf(report, m).status()), HasSubstr("no such collective"));
}

TEST(ValidationTest, ErrorsAreAveragedByChipKindAndRole) {
  // +10 % and -30 %: 20 % on average; a fitted row counts apart, a bound not at all.
  const std::string text =
      FormatValidation({Of("A", MeasurementRole::kValidation, 10, 11),
                        Of("B", MeasurementRole::kValidation, 10, 7),
                        Of("C", MeasurementRole::kCalibration, 10, 10.1),
                        Of("D", MeasurementRole::kUpperBound, 10, 5),
                        Of("E", MeasurementRole::kUpperBound, 10, 12)},
                       {}, kWidth);
  EXPECT_THAT(text, HasSubstr("+10.0%"));
  EXPECT_THAT(text, HasSubstr("-30.0%"));
  EXPECT_THAT(text, ::testing::ContainsRegex("v5e +validation A +matmul +2 +20.0% +30.0% +B"));
  EXPECT_THAT(text, ::testing::ContainsRegex("v5e +calibration +matmul +1 +1.0% +1.0% +C"));
  EXPECT_THAT(text, ::testing::ContainsRegex("all +validation A +all +2 +20.0%"));
  EXPECT_THAT(text, ::testing::ContainsRegex("D .* below"));
  EXPECT_THAT(text, ::testing::ContainsRegex("E .* EXCEEDED"));
  EXPECT_THAT(text, Not(HasSubstr("pending")));
}

TEST(ValidationTest, PendingRowsAreListedByReason) {
  const std::string text = FormatValidation({},
                                            {{"T1 a", "v4", "x", "1 s", "no such memory", "s"},
                                             {"T1 b", "v4", "x", "1 s", "no such memory", "s"},
                                             {"T2", "v4", "x", "1 s", "no such memory", "s"},
                                             {"T3", "v6e", "x", "1 s", "training", "s"}},
                                            kWidth);
  EXPECT_THAT(text, ::testing::ContainsRegex("v4 +3 +no such memory +T1 T2"));
  EXPECT_THAT(text, ::testing::ContainsRegex("v6e +1 +training +T3"));
}

}  // namespace
}  // namespace tpusim::results
