#include "sim/results/page/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "configs/status_macros.h"
#include "tests/sim/results/sample.h"

namespace tpusim::results {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

nlohmann::json TimelineOf(const Sample& s) {
  const absl::StatusOr<std::string> json = TimelineJson(s.config, s.info, s.timeline);
  EXPECT_TRUE(json.ok()) << Message(json.status());
  return nlohmann::json::parse(*json);
}

const nlohmann::json& TrackOf(const nlohmann::json& timeline, const std::string& name) {
  for (const nlohmann::json& track : timeline["tracks"]) {
    if (track["name"] == name) return track;
  }
  ADD_FAILURE() << "no track " << name;
  static const nlohmann::json none;
  return none;
}

TEST(PageTest, TheTimelineIsOfTheCriticalDevice) {
  Sample s = MakeSample();
  EXPECT_EQ(TimelineOf(s)["device"], "TPU_0(process=0,(0,0,0,0))");
  s.timeline.critical_device = 1;
  EXPECT_EQ(TimelineOf(s)["device"], "TPU_1(process=0,(1,0,0,0))");
  // Not recorded: the first that is.
  s.timeline.recorded_devices = {0};
  std::vector<sim::Span> spans = s.timeline.recording.Spans();
  std::erase_if(spans, [](const sim::Span& span) { return span.device == 1; });
  s.timeline.recording = Recorded(spans);
  EXPECT_EQ(TimelineOf(s)["device"], "TPU_0(process=0,(0,0,0,0))");
}

TEST(PageTest, SlicesAreStartLengthNameAndOperation) {
  const nlohmann::json timeline = TimelineOf(MakeSample());
  EXPECT_EQ(timeline["end_ns"], 100'000);
  const nlohmann::json& slices = TrackOf(timeline, "TensorCore")["slices"];
  ASSERT_EQ(slices.size(), 5u * 4);
  // The loop, and in it the first product: 20 to 92 us, 20 to 55 us.
  EXPECT_EQ(slices[4], 20'000);
  EXPECT_EQ(slices[5], 72'000);
  EXPECT_EQ(timeline["names"][slices[6].get<size_t>()], "while.2");
  EXPECT_EQ(slices[8], 20'000);
  EXPECT_EQ(slices[9], 35'000);
  EXPECT_EQ(timeline["ops"][slices[11].get<size_t>()]["source"], "f.py:12");
  // Scopes are of no operation.
  EXPECT_EQ(TrackOf(timeline, "Scopes")["slices"][3], -1);
  EXPECT_EQ(TrackOf(timeline, "HBM bandwidth")["samples"],
            nlohmann::json::parse("[0, 0, 20000, 800, 55000, 200]"));
  EXPECT_EQ(timeline["left_out"], 0);
}

TEST(PageTest, ShortSlicesAreLeftOutAndCounted) {
  Sample s = MakeSample();
  std::vector<sim::Span> spans;
  constexpr int64_t kShort = 30'000;
  for (int64_t i = 0; i < kShort + 10; ++i) {
    sim::Span span;
    span.op = kMatmul;
    span.start = Nanoseconds(10 * i);
    span.end = span.start + Nanoseconds(i < kShort ? 1 : 5);
    spans.push_back(span);
  }
  s.timeline.recording = Recorded(spans);
  const nlohmann::json timeline = TimelineOf(s);
  EXPECT_EQ(TrackOf(timeline, "TensorCore")["slices"].size(), 10u * 4);
  EXPECT_EQ(timeline["left_out"], kShort);
}

TEST(PageTest, WithoutARecordingThereIsNone) {
  Sample s = MakeSample();
  s.timeline.recorded_devices.clear();
  s.timeline.recording = Recorded({});
  EXPECT_EQ(*TimelineJson(s.config, s.info, s.timeline), "");
}

TEST(PageTest, APageHoldsItsRunsAndNeedsNothingElse) {
  const std::string page = PageOfRuns("a < b", {{"one", "{\"x\": \"</script>\"}", ""}});
  EXPECT_THAT(page, StartsWith("<!doctype html>"));
  EXPECT_THAT(page, HasSubstr("<title>a &lt; b</title>"));
  EXPECT_THAT(page, HasSubstr("\"report\": {\"x\": \"\\u003c/script>\"}"));
  EXPECT_THAT(page, HasSubstr("d3js.org"));  // the library, whose comment names its authors
  // Not by a matcher, which would print all of the page.
  for (const char* outside : {"{{", "<script src", "<link rel=\"stylesheet"}) {
    EXPECT_EQ(page.find(outside), std::string::npos) << outside;
  }
}

TEST(PageTest, DataOfAnotherSchemaIsTheUsersError) {
  EXPECT_TRUE(PageOfData(R"({"schema": "tpusim.page/1", "title": "t"})").ok());
  for (const char* wrong : {"", "[]", R"({"schema": "tpusim.page/1"})", R"({"title": "t"})"}) {
    EXPECT_EQ(PageOfData(wrong).status().code(), absl::StatusCode::kInvalidArgument) << wrong;
  }
}

}  // namespace
}  // namespace tpusim::results
