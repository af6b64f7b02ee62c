#include "configs/chip_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "configs/chip_schema.h"
#include "configs/status_macros.h"
#include "tests/temporary_folder.h"

namespace tpusim::configs {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Fault(const std::string& text) {
  const absl::StatusOr<ChipFile> file = ParseChip(text, "my.json", "");
  return file.ok() ? "" : Message(file.status());
}

TEST(ChipFileTest, V5eIsWhatThePublishedFiguresSay) {
  const absl::StatusOr<ChipFile> file = LoadChip("v5e", "");
  ASSERT_TRUE(file.ok()) << Message(file.status());
  const ChipParams& c = file->chip;
  EXPECT_EQ(c.name, "v5e");
  EXPECT_EQ(c.CoresPerDevice(), 1);
  EXPECT_EQ(c.clock, Hertz(1.5e9));
  // 2 * 128 * 128 * 4 * 1.5e9.
  EXPECT_DOUBLE_EQ(c.MxuPeak().value(), 1.96608e14);
  EXPECT_EQ(c.vmem.bytes, Bytes(128 * kMiB));
  EXPECT_EQ(c.vmem.scoped_bytes, Bytes(16 * kMiB));
  // 15.75 GiB usable.
  EXPECT_EQ((c.hbm.bytes - c.hbm.reserved_bytes).value(), 63 * kGiB / 4);
  EXPECT_EQ(c.hbm.bytes_per_second, BytesPerSecond(819e9));
  EXPECT_EQ(c.ici.hop_latency, Microseconds(1));
  EXPECT_EQ(c.slices.axes, 2);
  EXPECT_EQ(c.slices.wrap, WrapRule::kAxisLength16);
  EXPECT_THAT(c.slices.max, ElementsAre(16, 16, 1));
  ASSERT_EQ(c.device_order.trays.size(), 3u);
  EXPECT_THAT(c.device_order.trays[1].order, ElementsAre(0, 1, 2, 3, 7, 6, 5, 4));
}

TEST(ChipFileTest, V5eKernelFloorIsNotCountedTwice) {
  const ChipParams c = LoadChip("v5e", "")->chip;
  // Launch and first DMA together are the fixed cost of a kernel: 1838 cycles
  // at 1.5 GHz are 1225 ns.
  EXPECT_EQ(c.tensor_core.kernel_launch + c.dma.start_latency, Nanoseconds(1225));
}

TEST(ChipFileTest, V5eLinkRatesReproduceTheirMeasurements) {
  const IciParams ici = LoadChip("v5e", "")->chip.ici;
  const double line = ici.link_bytes_per_second.value() * ici.unwrapped_efficiency;
  const double ring = ici.link_bytes_per_second.value() * ici.wrapped_efficiency;
  const double launch = ToMicroseconds(ici.launch);
  const double hop = ToMicroseconds(ici.hop_latency);
  // Line of 4, 3 MiB into the end chip: 5.4 + 3 + 80.6 = 89 us.
  EXPECT_NEAR(launch + 3 * hop + 3 * static_cast<double>(kMiB) / line * 1e6, 89, 0.1);
  // Ring of 16, 15/32 of the array over each link: 19.2 us and 47.6 ms.
  EXPECT_NEAR(launch + 8 * hop + 15.0 / 32 * 524288 / ring * 1e6, 19.2, 0.1);
  EXPECT_NEAR((launch + 8 * hop + 15.0 / 32 * 4294967296 / ring * 1e6) / 47600, 1, 0.002);
}

TEST(ChipFileTest, OwnChipInheritsFromItsBase) {
  const auto file = ParseChip(
      R"({"base": "v5e", "name": "fast", "chip": {"hbm": {"bytes_per_second": 1.6e12},
          "mxu": {"count": {"value": 8, "unit": "count", "source": "a wish"}}},
          "topology": {"slices": ["3x5"]}})",
      "my.json", "");
  ASSERT_TRUE(file.ok()) << Message(file.status());
  EXPECT_EQ(file->chip.name, "fast");
  EXPECT_EQ(file->chip.hbm.bytes_per_second, BytesPerSecond(1.6e12));
  EXPECT_EQ(file->chip.mxu.count, 8);
  EXPECT_EQ(file->chip.mxu.rows, 128);
  EXPECT_THAT(file->chip.slices.slices, ElementsAre("3x5"));
  EXPECT_EQ(file->chip.slices.wrap, WrapRule::kAxisLength16);
  const auto source = [&](const char* path) {
    return file->provenance[FindParameter(path) - ChipParameters().data()].source;
  };
  EXPECT_EQ(source("chip.hbm.bytes_per_second"), "my.json");
  EXPECT_EQ(source("chip.mxu.count"), "a wish");
  EXPECT_EQ(source("chip.mxu.rows"), "jax tpu_info.py");
}

TEST(ChipFileTest, TheCompilerOfAChipIsData) {
  const auto v4 = LoadChip("v4", "");
  ASSERT_TRUE(v4.ok()) << Message(v4.status());
  EXPECT_EQ(v4->chip.compiler.like, "v5p");
  EXPECT_EQ(v4->chip.compiler.permutes_in_flight, 5);
  EXPECT_EQ(v4->chip.compiler.host_copies_in_flight, 32);
  const auto own = ParseChip(
      R"({"base": "v5e", "name": "own", "compiler": {"like": "", "gathers_in_flight": 3}})",
      "my.json", "");
  ASSERT_TRUE(own.ok()) << Message(own.status());
  EXPECT_EQ(own->chip.compiler.like, "");
  EXPECT_EQ(own->chip.compiler.gathers_in_flight, 3);
  EXPECT_EQ(own->chip.compiler.windowed_flops_per_byte, 2190);
  EXPECT_EQ(own->chip.compiler.window_registers, 1024);
  EXPECT_THAT(Fault(R"({"base": "v5e", "compiler": {"window_registers": 0}})"),
              HasSubstr("compiler.window_registers = 0 is out of range: from 1 to"));
  EXPECT_THAT(Fault(R"({"base": "v5e", "compiler": {"likes": "v5e"}})"),
              HasSubstr("unknown field \"likes\"; the nearest is like"));
  EXPECT_THAT(Fault(R"({"base": "v5e", "compiler": {"copies_in_flight": 0}})"),
              HasSubstr("compiler.copies_in_flight = 0 is out of range: from 1 to"));
}

TEST(ChipFileTest, ErrorsSayWhatAndWhere) {
  EXPECT_THAT(Fault("{"), HasSubstr("my.json: parse error at line 1"));
  EXPECT_THAT(Fault("[]"), HasSubstr("JSON object"));
  EXPECT_THAT(Fault(R"({"name": "x"})"), HasSubstr("chip.tensor_cores is missing"));
  EXPECT_THAT(Fault(R"({"base": "v5"})"), HasSubstr("unknown chip \"v5\"; the nearest is v5e"));
  EXPECT_THAT(Fault(R"({"base": "v5e", "icy": {}})"),
              HasSubstr("unknown field \"icy\"; the nearest is ici"));
  EXPECT_THAT(Fault(R"({"base": "v5e", "chip": {"hbm": {"byte_per_second": 1}}})"),
              HasSubstr("no parameter chip.hbm.byte_per_second; the nearest is "
                        "chip.hbm.bytes_per_second"));
  EXPECT_THAT(Fault(R"({"base": "v5e", "chip": {"hbm": 5}})"), HasSubstr("chip.hbm must be an"));
  EXPECT_THAT(Fault(R"({"base": "v5e", "chip": {"hbm": {"bytes": "16"}}})"),
              HasSubstr("chip.hbm.bytes: the value must be a number (bytes)"));
  EXPECT_THAT(
      Fault(R"({"base": "v5e", "ici": {"launch_ns": {"value": 5, "unit": "us", "source": "x"}}})"),
      HasSubstr("ici.launch_ns: the unit is ns, not us"));
  EXPECT_THAT(Fault(R"({"base": "v5e", "ici": {"launch_ns": {"unit": "ns"}}})"),
              HasSubstr("value must be given"));
  EXPECT_THAT(Fault(R"({"base": "v5e", "ici": {"launch_ns": {"value": 5, "sauce": "x"}}})"),
              HasSubstr("unknown field \"sauce\""));
  EXPECT_THAT(Fault(R"({"base": "v5e", "ici": {"launch_ns": -1}})"), HasSubstr("out of range"));
  EXPECT_THAT(Fault(R"({"base": "v5e", "topology": {"wrap": "always"}})"), HasSubstr("wrap"));
  EXPECT_THAT(Fault(R"({"base": "v5e", "topology": {"slices": ["4x4x4"]}})"), HasSubstr("4x4x4"));
  EXPECT_THAT(Fault(R"({"base": "v5e", "topology": {"slices": ["32x1"]}})"), HasSubstr("max"));
  EXPECT_THAT(Fault(R"({"base": "v5e", "device_order": {"trays": [{"order": [0, 0]}]}})"),
              HasSubstr("every position"));
  EXPECT_THAT(Fault(R"({"base": "v5e", "chip": {"vmem": {"bytes": 1048576}}})"),
              HasSubstr("chip.vmem.scoped_bytes = 16777216 exceeds"));
}

TEST(ChipFileTest, AFileThatNamesItselfIsAnError) {
  const TemporaryFolder folder;
  const std::string name = "self.json";
  const std::string path = folder / name;
  std::ofstream(path) << R"({"base": ")" << name << R"(", "name": "x"})";
  const absl::StatusOr<ChipFile> file = LoadChip(path, "");
  EXPECT_THAT(Message(file.status()), HasSubstr("does a file name itself?"));
}

TEST(ChipFileTest, MissingFilesAreNamed) {
  EXPECT_THAT(Message(LoadChip("/nonexistent/a.json", "").status()),
              HasSubstr("cannot read /nonexistent/a.json"));
  // A folder is no file.
  EXPECT_FALSE(LoadChip("..json", TemporaryFolder().path().string()).ok());
}

TEST(ChipFileTest, CmemHasARate) {
  EXPECT_THAT(Fault(R"({"base": "v5e", "name": "my", "chip": {"cmem": {"bytes": 1000}}})"),
              HasSubstr("chip.cmem.bytes = 1000 has no chip.cmem.bytes_per_second beside it"));
}

}  // namespace
}  // namespace tpusim::configs
