#include "configs/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "configs/status_macros.h"
#include "tests/temporary_folder.h"

namespace tpusim::configs {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string Error(const std::string& text, const std::vector<std::string>& overrides = {}) {
  const absl::StatusOr<Config> config = LoadConfig(text, overrides);
  return config.ok() ? "" : Message(config.status());
}

TEST(LoadConfigTest, ChipAndSlice) {
  const absl::StatusOr<Config> config = LoadConfig("v5e-4x2", {});
  ASSERT_TRUE(config.ok()) << Message(config.status());
  EXPECT_EQ(config->name, "v5e-4x2");
  EXPECT_EQ(config->chip.name, "v5e");
  EXPECT_THAT(config->topology.shape(), ElementsAre(4, 2, 1));
  EXPECT_EQ(config->devices(), 8);
  EXPECT_THAT(config->warnings, IsEmpty());
  EXPECT_THAT(config->overrides, IsEmpty());
}

TEST(LoadConfigTest, WrapsFollowTheRuleOfTheChip) {
  const auto wraps = [](const char* text) {
    const Config config = LoadConfig(text, {}).value();
    return std::vector<bool>{config.topology.wraps(0), config.topology.wraps(1)};
  };
  EXPECT_THAT(wraps("v5e-8x8"), ElementsAre(false, false));
  EXPECT_THAT(wraps("v5e-8x16"), ElementsAre(false, true));
  EXPECT_THAT(wraps("v5e-16x8"), ElementsAre(true, false));
  EXPECT_THAT(wraps("v5e-16x16"), ElementsAre(true, true));
}

TEST(LoadConfigTest, EveryListedSliceLoads) {
  for (const std::string& chip : ChipNames()) {
    ASSERT_FALSE(SliceNames(chip).empty());
    for (const std::string& slice : SliceNames(chip)) {
      const absl::StatusOr<Config> config = LoadConfig(chip + "-" + slice, {});
      ASSERT_TRUE(config.ok()) << Message(config.status());
      EXPECT_EQ(config->name, chip + "-" + slice);
    }
  }
  EXPECT_THAT(ChipNames(), Contains("v5e"));
  EXPECT_THAT(SliceNames("v9"), IsEmpty());
}

TEST(LoadConfigTest, ATrailingAxisOfOneIsTheSameSlice) {
  EXPECT_EQ(LoadConfig("v5e-4x2x1", {})->name, "v5e-4x2");
}

TEST(LoadConfigTest, SlicesThatDoNotExistListTheOnesThatDo) {
  EXPECT_EQ(Error("v5e-3x5"),
            "v5e has no slice 3x5; the nearest is 4x4; slices that exist: 1x1, 2x2, 2x4, 4x2, 4x4, "
            "4x8, 8x4, 8x8, "
            "8x16, 16x8, 16x16");
  EXPECT_THAT(Error("v5e-4x2x2"), HasSubstr("no slice 4x2x2"));
  for (const char* text : {"v5e-7", "v5e-", "v5e-4x", "v5e-x2", "v5e-4x-2", "v5e-0x2", "v5e-4*2",
                           "v5e-4x2x1x1", "v5e-99999999999999999999x2"}) {
    EXPECT_THAT(Error(text), HasSubstr("8x16, 16x8, 16x16")) << text;
  }
}

TEST(LoadConfigTest, UnknownChipsNameTheNearest) {
  EXPECT_THAT(Error("v5f-4x2"), HasSubstr("unknown chip \"v5f\"; the nearest is v5e"));
  EXPECT_THAT(Error("v5e"), HasSubstr("no slice given"));
  EXPECT_THAT(Error(""), HasSubstr("write CHIP-SLICE, such as v2-"));
}

TEST(LoadConfigTest, SeveralSlices) {
  const Config config = LoadConfig("2x(v5e-16x16)", {}).value();
  EXPECT_EQ(config.name, "2x(v5e-16x16)");
  EXPECT_EQ(config.topology.slices(), 2);
  EXPECT_EQ(config.devices(), 512);
  EXPECT_EQ(HostCount(config), 64);  // 256 chips in boxes of 8, twice
  EXPECT_EQ(HostOf(config, 255), 31);
  EXPECT_EQ(HostOf(config, 256), 32);
  EXPECT_EQ(LoadConfig("1x(v5e-4x2)", {})->name, "v5e-4x2");
  for (const char* text : {"2(v5e-4x2)", "x(v5e-4x2)", "0x(v5e-4x2)", "-2x(v5e-4x2)", "2x(v5e-4x2",
                           "2y(v5e-4x2)", "99999x(v5e-4x2)", "(v5e-4x2)"}) {
    EXPECT_THAT(Error(text), HasSubstr("several slices are written as 2x(v5e-16x16)")) << text;
  }
  EXPECT_THAT(Error("2x(v5e-3x5)"), HasSubstr("v5e has no slice 3x5"));
  EXPECT_THAT(Error("2x(v5e)"), HasSubstr("no slice given"));
  EXPECT_THAT(Error("2x(2x(v5e-4x2))"), HasSubstr("2x(2x(v5e-4x2))"));
}

TEST(OverrideTest, ChangesTheParameterAndIsRecorded) {
  const absl::StatusOr<Config> config =
      LoadConfig("v5e-4x2", {"chip.hbm.bytes_per_second=1.6e12", "ici.hop_latency_ns=500"});
  ASSERT_TRUE(config.ok()) << Message(config.status());
  EXPECT_EQ(config->chip.hbm.bytes_per_second, BytesPerSecond(1.6e12));
  EXPECT_EQ(config->chip.ici.hop_latency, Nanoseconds(500));
  ASSERT_EQ(config->overrides.size(), 2u);
  EXPECT_EQ(config->overrides[0].path, "chip.hbm.bytes_per_second");
  EXPECT_EQ(config->overrides[0].before, 8.19e11);
  EXPECT_EQ(config->overrides[0].after, 1.6e12);
  EXPECT_THAT(config->warnings, IsEmpty());
}

TEST(OverrideTest, TheLastOneHolds) {
  const Config config =
      LoadConfig("v5e-4x2", {"ici.hop_latency_ns=500", "ici.hop_latency_ns=700"}).value();
  EXPECT_EQ(config.chip.ici.hop_latency, Nanoseconds(700));
  EXPECT_THAT(config.warnings, ElementsAre(HasSubstr("set more than once; the last value, 700")));
}

TEST(OverrideTest, WarnsAboutWhatChangesNothing) {
  EXPECT_THAT(LoadConfig("v5e-4x2", {"ici.hop_latency_ns=1000"})->warnings,
              ElementsAre(HasSubstr("changes nothing")));
}

TEST(OverrideTest, WarnsWhenThePeakNoLongerFitsTheArrays) {
  // 8 arrays: 3.93e14.
  EXPECT_THAT(LoadConfig("v5e-4x2", {"chip.mxu.count=8"})->warnings,
              ElementsAre(HasSubstr("reach 3.932e+14 FLOP/s")));
  EXPECT_THAT(LoadConfig("v5e-4x2", {"chip.mxu.count=8", "chip.peak_bf16_flops_per_second=3.94e14"})
                  ->warnings,
              IsEmpty());
}

TEST(OverrideTest, UnitsAndFactors) {
  const auto hbm = [](const char* text) {
    return LoadConfig("v5e-4x2", {text})->chip.hbm.bytes_per_second.value();
  };
  EXPECT_EQ(hbm("chip.hbm.bytes_per_second=1.6TB/s"), 1.6e12);
  EXPECT_EQ(hbm("chip.hbm.bytes_per_second=2x"), 2 * 8.19e11);
}

TEST(OverrideTest, ErrorsNameTheNearestParameter) {
  EXPECT_EQ(Error("v5e-4x2", {"chip.hbm.bytes_per_secnd=1"}),
            "--set: no parameter chip.hbm.bytes_per_secnd; the nearest is "
            "chip.hbm.bytes_per_second");
  EXPECT_THAT(Error("v5e-4x2", {"hop_latency_ns=1"}), HasSubstr("nearest is ici.hop_latency_ns"));
  EXPECT_THAT(Error("v5e-4x2", {"ici.hop_latency_ns"}), HasSubstr("write NAME=VALUE"));
  EXPECT_THAT(Error("v5e-4x2", {"=1"}), HasSubstr("write NAME=VALUE"));
  EXPECT_THAT(Error("v5e-4x2", {"ici.hop_latency_ns=fast"}),
              HasSubstr("\"fast\" is not a number (ns)"));
  EXPECT_THAT(Error("v5e-4x2", {"ici.hop_latency_ns=5GHz"}), HasSubstr("not a number (ns)"));
  EXPECT_THAT(Error("v5e-4x2", {"ici.hop_latency_ns="}), HasSubstr("not a number"));
  EXPECT_THAT(Error("v5e-4x2", {"ici.hop_latency_ns=nan"}), HasSubstr("out of range"));
  EXPECT_THAT(Error("v5e-4x2", {"chip.mxu.rows=0"}), HasSubstr("out of range"));
  EXPECT_THAT(Error("v5e-4x2", {"chip.mxu.rows=12.5"}), HasSubstr("whole number"));
  // Each in range, together impossible.
  EXPECT_THAT(Error("v5e-4x2", {"chip.vmem.bytes=1048576"}), HasSubstr("scoped_bytes"));
  EXPECT_THAT(Error("v5e-4x2", {"chip.devices=2"}), HasSubstr("must divide"));
}

std::vector<std::string> OthersThanSpeeds(const std::string& slice,
                                          const std::vector<std::string>& overrides) {
  return WithoutSpeeds(overrides, LoadConfig(slice, overrides).value());
}

TEST(WithoutSpeedsTest, RatesLatenciesAndEfficienciesAreSpeeds) {
  EXPECT_THAT(
      OthersThanSpeeds("v5e-4x2", {"chip.clock_hz=3e9", "chip.peak_bf16_flops_per_second=3.94e14",
                                   "chip.mxu.lhs_rows_per_cycle=2", "chip.hbm.efficiency=1",
                                   "chip.hbm.bytes_per_second=1.6e12", "ici.launch_ns=0",
                                   "host.dcn_latency_ns=1000"}),
      IsEmpty());
}

TEST(WithoutSpeedsTest, CyclesOfInstructionsStay) {
  const std::vector<std::string> cycles = {"chip.dma.issue_cycles=2", "chip.vpu.latency_cycles=4"};
  EXPECT_EQ(OthersThanSpeeds("v5e-4x2", cycles), cycles);
}

TEST(WithoutSpeedsTest, SizesAndCountsStayInTheirOrder) {
  EXPECT_THAT(OthersThanSpeeds("v5e-4x2", {"chip.mxu.count=8", "ici.hop_latency_ns=500",
                                           "chip.hbm.bytes=34359738368"}),
              ElementsAre("chip.mxu.count=8", "chip.hbm.bytes=34359738368"));
  EXPECT_THAT(OthersThanSpeeds("v5e-4x2", {}), IsEmpty());
}

// v5e has no CMEM; v4 has, and there its rate is one like others.
TEST(WithoutSpeedsTest, TheRateOfAPartThatTheChipDidNotHaveStays) {
  const std::vector<std::string> cmem = {"chip.cmem.bytes=134217728",
                                         "chip.cmem.bytes_per_second=5e12"};
  EXPECT_EQ(OthersThanSpeeds("v5e-4x2", cmem), cmem);
  EXPECT_THAT(OthersThanSpeeds("v4-2x2x1", {cmem[1]}), IsEmpty());
}

class ConfigFileTest : public ::testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& text) {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path) << text;
    return path;
  }
  const TemporaryFolder temporary_;
  const std::string folder_ = temporary_.path().string();
};

TEST_F(ConfigFileTest, NamesChipSliceAndOverrides) {
  const std::string path =
      Write("c.json", R"({"chip": "v5e", "slice": "8x8", "set": {"ici.hop_latency_ns": 400}})");
  const absl::StatusOr<Config> config = LoadConfig(path, {"ici.launch_ns=1000"});
  ASSERT_TRUE(config.ok()) << Message(config.status());
  EXPECT_EQ(config->name, "v5e-8x8");
  EXPECT_EQ(config->chip.ici.hop_latency, Nanoseconds(400));
  EXPECT_EQ(config->chip.ici.launch, Nanoseconds(1000));
  EXPECT_EQ(config->overrides.size(), 2u);
}

// The chip as a file sets it counts as unchanged.
TEST_F(ConfigFileTest, WithoutSpeedsLooksAtTheCommandLineOnly) {
  const std::string path = Write("c.json", R"({"chip": "v5e", "slice": "4x2",
      "set": {"chip.cmem.bytes": 134217728, "chip.cmem.bytes_per_second": 5e12}})");
  EXPECT_THAT(OthersThanSpeeds(path, {"chip.cmem.bytes_per_second=6e12", "chip.mxu.count=8"}),
              ElementsAre("chip.mxu.count=8"));
}

TEST_F(ConfigFileTest, FindsAnOwnChipBesideItself) {
  Write("fast.json", R"({"base": "v5e", "name": "fast",
                         "chip": {"hbm": {"bytes_per_second": 1.6e12}}})");
  const std::string path = Write("c.json", R"({"chip": "fast.json", "slice": "4x2"})");
  const absl::StatusOr<Config> config = LoadConfig(path, {});
  ASSERT_TRUE(config.ok()) << Message(config.status());
  EXPECT_EQ(config->name, "fast-4x2");
  EXPECT_EQ(config->chip.hbm.bytes_per_second, BytesPerSecond(1.6e12));
}

TEST_F(ConfigFileTest, ErrorsNameTheFile) {
  const std::string chip = Write("chip.json", R"({"base": "v5e", "name": "x"})");
  EXPECT_THAT(Error(chip), HasSubstr("this is a chip file"));
  EXPECT_THAT(Error(Write("a.json", R"({"chip": "v5e"})")),
              HasSubstr("a.json: a configuration is"));
  EXPECT_THAT(Error(Write("b.json", R"({"chip": "v5e", "slice": "4x2", "sets": {}})")),
              HasSubstr("unknown field \"sets\"; the nearest is set"));
  EXPECT_THAT(Error(Write("d.json", R"({"chip": "v5e", "slice": "4x2", "set": {"x": 1}})")),
              HasSubstr("d.json: no parameter x"));
  EXPECT_THAT(Error(Write("e.json", R"({"chip": "v5e", "slice": "4x2", "set": {"x": "1"}})")),
              HasSubstr("must be a number"));
  EXPECT_THAT(Error(Write("f.json", "")), HasSubstr("f.json: parse error"));
  EXPECT_THAT(Error(folder_ + "/none.json"), HasSubstr("none.json: no such file"));
  EXPECT_THAT(Error(Write("g.json", R"({"chip": "none.json", "slice": "4x2"})")),
              HasSubstr(folder_ + "/none.json: no such file"));
}

TEST(DescribeChipTest, GivesEveryParameterWithUnitAndSource) {
  const absl::StatusOr<std::vector<ParameterInfo>> infos = DescribeChip("v5e");
  ASSERT_TRUE(infos.ok());
  const auto find = [&](const std::string& path) {
    for (const ParameterInfo& info : *infos) {
      if (info.path == path) return info;
    }
    return ParameterInfo();
  };
  const ParameterInfo hbm = find("chip.hbm.bytes_per_second");
  EXPECT_EQ(hbm.value, "819000000000");
  EXPECT_EQ(hbm.unit, "bytes_per_second");
  EXPECT_THAT(hbm.source, HasSubstr("Cloud TPU documentation"));
  EXPECT_THAT(find("chip.hbm.bytes").note, HasSubstr("17.2e9"));
  for (const ParameterInfo& info : *infos) EXPECT_FALSE(info.source.empty()) << info.path;
  EXPECT_FALSE(DescribeChip("v9").ok());
}

}  // namespace
}  // namespace tpusim::configs
