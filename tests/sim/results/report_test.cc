#include "sim/results/report/build_report.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "configs/embedded_files.h"
#include "configs/status_macros.h"
#include "models/isa/program.h"
#include "sim/results/report/scope.h"
#include "sim/results/report/summary.h"
#include "tests/sim/results/sample.h"

namespace tpusim::results {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

template <typename T, typename F>
auto Column(const std::vector<T>& rows, F field) {
  std::vector<std::decay_t<decltype(field(rows[0]))>> column;
  for (const T& row : rows) column.push_back(field(row));
  return column;
}

TEST(ReportTest, Bounds) {
  const Report r = SampleReport();
  EXPECT_EQ(r.bound.compute, Microseconds(60));  // 6 GFLOP at 100 TFLOP/s
  EXPECT_EQ(r.bound.hbm, Microseconds(30));      // 30 MB at 1 TB/s, not at the sustained 0.8
  EXPECT_EQ(r.bound.ici, Microseconds(50));      // 5 MB over the fullest link at 100 GB/s
  EXPECT_EQ(r.bound.host, Picoseconds(0));
  EXPECT_EQ(r.bound.dcn, Picoseconds(0));
}

TEST(ReportTest, SerialCollectivesRaiseTheIciBound) {
  Sample s = MakeSample();
  // Six waited-for gathers of 10 us each are 60 us, more than the link's 50.
  sim::OpTotals& gathers = s.timeline.ops[kAllGather];
  gathers.count = 6;
  gathers.total = gathers.exposed = gathers.waited = Microseconds(60);
  s.timeline.ops[kMatmul].total = Picoseconds(0);  // there is no time for it then
  EXPECT_EQ(BuildReport(s.config, s.info, s.timeline, "f")->bound.ici, Microseconds(60));
  // In flight beside each other only one of them is sure: back to the link.
  s.info.ops[kAllGather].is_async = true;
  EXPECT_EQ(BuildReport(s.config, s.info, s.timeline, "f")->bound.ici, Microseconds(50));
}

TEST(ReportTest, UtilizationsAreOfThePublishedPeak) {
  const Report r = SampleReport();
  EXPECT_DOUBLE_EQ(r.mfu, 0.6);     // 6.000 GFLOP of 10 that 100 us could have
  EXPECT_DOUBLE_EQ(r.hfu, 0.6001);  // 6.001 GFLOP
  EXPECT_EQ(r.flops, Flops(6'001'000'000));
}

TEST(ReportTest, PeakOfADeviceIsItsShareOfTheChip) {
  Sample s = MakeSample();
  s.config.topology = configs::Topology({1, 1, 1}, {false, false, false}, 2);
  for (sim::DeviceTotals& d : s.timeline.devices) d.sent = d.received = {};
  // Half of 100 TFLOP/s each: 6 of 5 GFLOP per 100 us.
  EXPECT_DOUBLE_EQ(BuildReport(s.config, s.info, s.timeline, "f")->mfu, 1.2);
}

TEST(ReportTest, CommunicationIsExposedOrHidden) {
  const Report r = SampleReport();
  EXPECT_EQ(r.exposed, Microseconds(20));
  EXPECT_EQ(r.hidden, Microseconds(60));  // 80 in flight less 20 exposed
}

TEST(ReportTest, OpsAreSumsByNameLongestFirst) {
  const Report r = SampleReport();
  EXPECT_THAT(Column(r.ops, [](const OpReport& o) { return o.name; }),
              ElementsAre("while.2", "fusion.3", "collective-permute-start.4", "all-gather.1",
                          "loop_fusion.5"));
  const OpReport& matmul = r.ops[1];
  EXPECT_EQ(matmul.count, 2);
  EXPECT_EQ(matmul.total, Microseconds(70));
  EXPECT_EQ(matmul.flops, Flops(6'000'000'000));
  EXPECT_EQ(matmul.hbm_bytes, Bytes(20'000'000));
  EXPECT_EQ(matmul.engine, "tensor_core");
  EXPECT_EQ(matmul.source, "f.py:12");
  EXPECT_EQ(r.ops[3].engine, "collective");
}

TEST(ReportTest, OpsOfOneNameAreOneRow) {
  Sample s = MakeSample();
  s.info.ops[kLoopFusion].name = "fusion.3";
  const Report r = *BuildReport(s.config, s.info, s.timeline, "f");
  ASSERT_EQ(r.ops.size(), 4u);
  EXPECT_EQ(r.ops[0].name, "fusion.3");
  EXPECT_EQ(r.ops[0].count, 3);
  EXPECT_EQ(r.ops[0].total, Microseconds(78));
}

TEST(ReportTest, OpsThatDidNotRunAreLeftOut) {
  Sample s = MakeSample();
  s.timeline.ops[kLoopFusion] = {};
  s.info.hbm_bytes = s.timeline.devices[0].moved.hbm() = Bytes(20'000'000);
  EXPECT_EQ(BuildReport(s.config, s.info, s.timeline, "f")->ops.size(), 4u);
}

TEST(ReportTest, ScopesHoldComputeAndExposedCommunication) {
  const Report r = SampleReport();
  EXPECT_THAT(Column(r.scopes, [](const ScopeReport& s) { return s.scope; }),
              ElementsAre("jit(f)", "jit(f)/layer", "jit(f)/layer/while", "jit(f)/layer/while/body",
                          "jit(f)/loss"));
  // jit(f): all-gather 20 exposed, matmuls 70, permutes hidden, loss 8; the
  // loop itself is not counted on top of its body.
  EXPECT_THAT(Column(r.scopes, [](const ScopeReport& s) { return s.total; }),
              ElementsAre(Microseconds(98), Microseconds(90), Microseconds(70), Microseconds(70),
                          Microseconds(8)));
  EXPECT_THAT(Column(r.scopes, [](const ScopeReport& s) { return s.exposed; }),
              ElementsAre(Microseconds(20), Microseconds(20), Picoseconds(0), Picoseconds(0),
                          Picoseconds(0)));
  EXPECT_EQ(r.scopes[0].flops, Flops(6'001'000'000));
}

TEST(ReportTest, ScopePathsSplitOutsideParentheses) {
  EXPECT_THAT(ScopesOf("jit(f)/transpose(jvp(a/b))/c/add"),
              ElementsAre("jit(f)", "transpose(jvp(a/b))", "c"));
  EXPECT_THAT(ScopesOf("add"), IsEmpty());
  EXPECT_THAT(ScopesOf(""), IsEmpty());
}

TEST(ReportTest, Collectives) {
  const Report r = SampleReport();
  ASSERT_EQ(r.collectives.size(), 2u);
  const CollectiveReport& permute = r.collectives[0];
  EXPECT_EQ(permute.kind, "collective-permute");
  EXPECT_EQ(permute.count, 2);
  EXPECT_EQ(permute.total, Microseconds(60));
  EXPECT_EQ(permute.exposed, Picoseconds(0));
  EXPECT_EQ(permute.expected, Microseconds(25));
  EXPECT_EQ(permute.bound, Microseconds(20));
  EXPECT_EQ(permute.hidden(), Microseconds(60));
  ASSERT_EQ(permute.covered_by.size(), 1u);
  EXPECT_EQ(permute.covered_by[0].what, "fusion.3");
  EXPECT_EQ(permute.covered_by[0].time, Microseconds(60));
  EXPECT_TRUE(permute.exposed_by.empty());
  const CollectiveReport& gather = r.collectives[1];
  EXPECT_EQ(gather.name, "all-gather.1");
  EXPECT_TRUE(gather.covered_by.empty());
  ASSERT_EQ(gather.exposed_by.size(), 1u);
  EXPECT_EQ(gather.exposed_by[0].what, "synchronous");
  EXPECT_EQ(gather.exposed_by[0].time, Microseconds(20));
  EXPECT_EQ(gather.exposed_by[0].text, "toy has no asynchronous all-gathers");
}

TEST(ReportTest, Links) {
  const Report r = SampleReport();
  ASSERT_EQ(r.links.size(), 2u);
  EXPECT_EQ(r.links[0].chip, 0);
  EXPECT_EQ(r.links[0].direction, configs::Direction::kXPlus);
  EXPECT_EQ(r.links[0].bytes, Bytes(5'000'000));
  EXPECT_DOUBLE_EQ(r.links[0].utilization, 0.5);  // 5 MB of 10 MB in 100 us
  EXPECT_EQ(r.links[1].direction, configs::Direction::kXMinus);
}

TEST(ReportTest, BoundByWhatHasMostOfTheCriticalPath) {
  using events::Spent;
  Sample s = MakeSample();
  const auto path = [&] { return BuildReport(s.config, s.info, s.timeline, "f")->critical_path; };
  EXPECT_EQ(BindingOf(path()), Binding::kCompute);
  EXPECT_EQ(BindingText(path()),
            "compute (critical path: MXU 70.0%, ICI 18.0%, VPU 8.0%, latency 4.0%)");
  // MXU and VPU are 30 us each, together more than the 40 of links.
  s.timeline.critical_path = {{kAllGather, Spent::kIci, Microseconds(40)},
                              {kMatmul, Spent::kMxu, Microseconds(30)},
                              {kLoopFusion, Spent::kVpu, Microseconds(30)}};
  EXPECT_EQ(BindingText(path()), "compute (critical path: MXU + VPU 60.0%, ICI 40.0%)");
  s.timeline.critical_path = {{kAllGather, Spent::kIci, Microseconds(45)},
                              {kAllGather, Spent::kLatency, Microseconds(46)},
                              {kMatmul, Spent::kHbm, Microseconds(9)}};
  EXPECT_EQ(BindingText(path()),
            "launch/latency (critical path: latency 46.0%, ICI 45.0%, HBM 9.0%)");
  // 20 us name it; PCIe, network and latency are 45 together, so they are not put together.
  s.timeline.critical_path = {
      {kAllGather, Spent::kDcn, Microseconds(16)},     {kAllGather, Spent::kHost, Microseconds(15)},
      {kAllGather, Spent::kLatency, Microseconds(14)}, {kAllGather, Spent::kIci, Microseconds(17)},
      {kMatmul, Spent::kHbm, Microseconds(18)},        {kMatmul, Spent::kMxu, Microseconds(20)}};
  EXPECT_EQ(BindingText(path()),
            "compute (critical path: MXU 20.0%, HBM 18.0%, ICI 17.0%, DCN 16.0%, PCIe 15.0%, "
            "latency 14.0%)");
  EXPECT_EQ(BindingText({}), "-");
}

TEST(ReportTest, CriticalPathByOperation) {
  const Report r = SampleReport();
  const std::vector<RollupRow>& rows = r.rollups.Of(RollupBy::kPath);
  EXPECT_THAT(Column(rows, [](const RollupRow& row) { return row.name + " " + row.category; }),
              ElementsAre("fusion.3 MXU", "all-gather.1 ICI", "loop_fusion.5 VPU",
                          "(no operation) latency", "all-gather.1 latency"));
  EXPECT_THAT(Column(rows, [](const RollupRow& row) { return row.time; }),
              ElementsAre(Microseconds(70), Microseconds(18), Microseconds(8), Microseconds(2),
                          Microseconds(2)));
  const auto j = nlohmann::json::parse(ToJson(r));
  EXPECT_EQ(j["bound_by"], "compute");
  EXPECT_EQ(j["critical_path_ns"]["ici"], 18'000);
  EXPECT_EQ(FromJson(ToJson(r))->critical_path, r.critical_path);
}

TEST(ReportTest, AnEmptyProgramHasNoUtilization) {
  Sample s = MakeSample();
  s.info = isa::ProgramInfo();
  s.timeline = sim::Timeline();
  s.timeline.devices.resize(2);
  const Report r = *BuildReport(s.config, s.info, s.timeline, "empty");
  EXPECT_EQ(r.mfu, 0);
  EXPECT_EQ(r.links[0].utilization, 0);
  EXPECT_THAT(r.ops, IsEmpty());
}

TEST(ReportTest, CmemIsReportedOnChipsThatHaveIt) {
  Report report = SampleReport();
  EXPECT_FALSE(nlohmann::json::parse(ToJson(report)).contains("peak_cmem_bytes"));
  EXPECT_THAT(Summarize(report), ::testing::Not(::testing::HasSubstr("CMEM")));
  report.peak.In(configs::MemorySpace::kCmem) = Bytes(3'000'000);
  report.usable.In(configs::MemorySpace::kCmem) = Bytes(128'000'000);
  const auto j = nlohmann::json::parse(ToJson(report));
  EXPECT_EQ(j["peak_cmem_bytes"], 3'000'000);
  EXPECT_EQ(j["usable_cmem_bytes"], 128'000'000);
  EXPECT_EQ(FromJson(ToJson(report, JsonDetail::kExchange))->peak.In(configs::MemorySpace::kCmem),
            report.peak.In(configs::MemorySpace::kCmem));
  EXPECT_THAT(Summarize(report), ::testing::HasSubstr(", 2.861 MiB of 122.1 MiB CMEM"));
}

TEST(ReportTest, JsonHasExactlyTheKeysOfTheSchemaInOrder) {
  const auto j = nlohmann::ordered_json::parse(ToJson(SampleReport()));
  const auto keys = [](const nlohmann::ordered_json& o) {
    std::vector<std::string> names;
    for (const auto& [name, value] : o.items()) names.push_back(name);
    return names;
  };
  EXPECT_THAT(keys(j),
              ElementsAre("schema", "tpusim_version", "command_line", "workload", "config",
                          "compiler", "step_time_ns", "error_bar", "bound_ns", "bound_by",
                          "critical_path_ns", "mfu", "hfu", "flops", "peak_flops_per_second",
                          "hbm_bytes_per_second", "exposed_communication_ns",
                          "hidden_communication_ns", "peak_hbm_bytes", "usable_hbm_bytes",
                          "memory_at_peak", "devices", "chips", "chip_classes", "folding", "events",
                          "ops", "scopes", "collectives", "reshard_sites", "rollup", "links",
                          "assumptions", "warnings", "records"));
  EXPECT_THAT(keys(j["folding"]), ElementsAre("approximate", "device_classes", "simulations",
                                              "ignored_skew_ns", "error_bound_ns", "steps"));
  EXPECT_THAT(keys(j["bound_ns"]), ElementsAre("compute", "hbm", "ici", "host", "dcn"));
  EXPECT_THAT(keys(j["ops"][0]), ElementsAre("name", "category", "scope", "count", "total_ns",
                                             "flops", "hbm_bytes", "engine", "source"));
  EXPECT_THAT(keys(j["scopes"][0]),
              ElementsAre("scope", "total_ns", "exposed_communication_ns", "flops"));
  EXPECT_THAT(keys(j["collectives"][0]),
              ElementsAre("name", "kind", "bytes", "group_size", "axes", "algorithm", "count",
                          "total_ns", "hidden_ns", "exposed_ns", "expected_ns", "bound_ns",
                          "covered_by", "exposed_by", "scope", "source"));
  EXPECT_THAT(keys(j["collectives"][0]["covered_by"][0]),
              ElementsAre("name", "hidden_ns", "share"));
  EXPECT_THAT(keys(j["collectives"][1]["exposed_by"][0]),
              ElementsAre("reason", "exposed_ns", "text"));
  EXPECT_THAT(keys(j["links"][0]), ElementsAre("chip", "direction", "bytes", "utilization"));
  EXPECT_EQ(j["schema"], "tpusim.report/1");
  EXPECT_EQ(j["step_time_ns"], 100'000.0);
  EXPECT_EQ(j["bound_ns"]["ici"], 50'000.0);
  EXPECT_EQ(j["links"][1]["direction"], "x-");
}

// Every object of `value` has fields that the schema has, and those that it requires.
void ExpectFieldsOf(const nlohmann::json& schema, const nlohmann::json& value,
                    const std::string& where) {
  if (value.is_array() && schema.contains("items")) {
    for (const nlohmann::json& item : value) ExpectFieldsOf(schema["items"], item, where + "[]");
  }
  if (!value.is_object() || !schema.contains("properties")) return;
  for (const auto& [name, inner] : value.items()) {
    EXPECT_TRUE(schema["properties"].contains(name)) << where << "." << name;
    if (schema["properties"].contains(name)) {
      ExpectFieldsOf(schema["properties"][name], inner, where + "." + name);
    }
  }
  for (const auto& name : schema.value("required", nlohmann::json::array())) {
    EXPECT_TRUE(value.contains(name)) << where << "." << name;
  }
}

TEST(ReportTest, FieldsAreThoseOfTheSchema) {
  const auto& schemas = configs::EmbeddedFiles("schemas");
  const auto schema = std::ranges::find(schemas, "report", &configs::EmbeddedFile::name);
  ASSERT_NE(schema, schemas.end());
  Report r = SampleReport();
  r.usable.In(configs::MemorySpace::kCmem) = Bytes(128'000'000);
  r.error_bar = {"v5e", "training", 3, 0.041, -0.077, "V40", "on v5e training"};
  r.reshard_sites.emplace_back().site.constraints.push_back({"x=P()", false});
  const auto json = nlohmann::json::parse(ToJson(r));
  ExpectFieldsOf(nlohmann::json::parse(schema->text), json, "report");
  EXPECT_EQ(json["reshard_sites"][0]["constraints"][0]["constrain"], "x=P()");
  // A field that is required is one without which the file is not read.
  for (const char* name : {"mfu", "critical_path_ns", "rollup", "warnings"}) {
    nlohmann::json without = json;
    without.erase(name);
    EXPECT_THAT(Message(FromJson(without.dump()).status()),
                ::testing::HasSubstr(fmt::format("key '{}' not found", name)));
  }
}

TEST(ReportTest, JsonComesBackAsItWas) {
  Report r = SampleReport();
  r.step_time = Picoseconds(100'000'001);  // a picosecond survives as 100000.001 ns
  r.producer = {"0.1.0", {"tpusim", "run", "f.pb"}};
  r.error_bar = {"v5e", "training", 3, 0.041, -0.077, "V40", "on v5e training"};
  const std::string text = ToJson(r, JsonDetail::kExchange);
  const absl::StatusOr<Report> back = FromJson(text);
  ASSERT_TRUE(back.ok()) << Message(back.status());
  EXPECT_EQ(ToJson(*back, JsonDetail::kExchange), text);
  EXPECT_EQ(back->step_time, Picoseconds(100'000'001));
  EXPECT_EQ(back->compute_busy, Microseconds(78));
  EXPECT_EQ(back->critical_path, r.critical_path);
  EXPECT_EQ(back->producer.command_line, r.producer.command_line);
  EXPECT_EQ(back->error_bar.worst, -0.077);
}

TEST(ReportTest, JsonSurvivesNamesThatAreNotText) {
  Report r = SampleReport();
  r.ops[0].name = "bad\xff name";
  EXPECT_TRUE(nlohmann::json::accept(ToJson(r)));
}

TEST(ReportTest, FromJsonNamesWhatIsWrong) {
  EXPECT_THAT(Message(FromJson("{").status()), ::testing::HasSubstr("not a report of schema"));
  EXPECT_THAT(Message(FromJson(R"({"schema": "other/2"})").status()),
              ::testing::HasSubstr("schema is not tpusim.report/1"));
}

}  // namespace
}  // namespace tpusim::results
