// The built-in chips against figures worked out by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "configs/chip_file.h"
#include "configs/chip_schema.h"
#include "configs/config.h"
#include "configs/status_macros.h"

namespace tpusim::configs {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ChipParams Chip(const std::string& name) {
  const absl::StatusOr<ChipFile> file = LoadChip(name, "");
  EXPECT_TRUE(file.ok()) << Message(file.status());
  return file.ok() ? file->chip : ChipParams();
}

double Peak(const ChipParams& chip, double passes = 1) {
  return chip.FastestPeak().value() * static_cast<double>(chip.devices) / passes;
}

TEST(ChipsTest, AllGenerationsAreThere) {
  EXPECT_THAT(ChipNames(),
              ElementsAre("8i", "8t", "v2", "v3", "v4", "v4i", "v5e", "v5p", "v6e", "v7x"));
}

// Arrays x cells x 2 (multiply and add) x rows per cycle x clock, per chip.
TEST(ChipsTest, PeaksFollowFromTheArrays) {
  constexpr double kSmall = 2.0 * 128 * 128, kLarge = 2.0 * 256 * 256;
  struct Expected {
    const char* chip;
    double made;       // arrays of the chip * cell operations * rows * clock
    double published;  // what the documentation says
  };
  for (const Expected& e : {
           Expected{"v2", 2 * kSmall * 0.7e9, 4.6e13},         // 45.9
           Expected{"v3", 4 * kSmall * 0.94e9, 1.23e14},       // 123.2
           Expected{"v4", 8 * kSmall * 1.05e9, 2.75e14},       // 275.3
           Expected{"v4i", 4 * kSmall * 1.05e9, 1.37e14},      // 137.6
           Expected{"v5e", 4 * kSmall * 1.5e9, 1.97e14},       // 196.6
           Expected{"v5p", 8 * kSmall * 1.75e9, 4.59e14},      // 458.8
           Expected{"v6e", 2 * kLarge * 2 * 1.75e9, 9.18e14},  // 917.5
           Expected{"v7x", 4 * kLarge * 2 * 2.2e9, 2.307e15},  // 2306.9
           Expected{"8i", 4 * kLarge * 2.1e9, 1.101e15},       // 1101.0
           Expected{"8t", 2 * kLarge * 2 * 1.9e9, 9.961e14},   // 996.1
       }) {
    const ChipParams chip = Chip(e.chip);
    EXPECT_DOUBLE_EQ(Peak(chip), e.made) << e.chip;
    EXPECT_EQ(chip.peak_bf16.value(), e.published) << e.chip;
    EXPECT_NEAR(e.made / e.published, 1, 0.005) << e.chip;
  }
}

TEST(ChipsTest, NarrowFormatsReachTheirPeaks) {
  const auto near = [](double a, double b) { return std::abs(a / b - 1) < 0.005; };
  // int8 twice bf16 on v5 and v6, fp8 twice on v7x, eight times on 8i, six on 8t.
  EXPECT_TRUE(near(Peak(Chip("v5p"), Chip("v5p").mxu.passes_int8), 9.18e14));
  EXPECT_TRUE(near(Peak(Chip("v5p"), Chip("v5p").mxu.passes_int4), 1.84e15));
  EXPECT_TRUE(near(Peak(Chip("v5p"), Chip("v5p").mxu.passes_fp8), 4.59e14));
  EXPECT_TRUE(near(Peak(Chip("v6e"), Chip("v6e").mxu.passes_int8), 1.84e15));
  EXPECT_TRUE(near(Peak(Chip("v6e"), Chip("v6e").mxu.passes_int4), 3.68e15));
  EXPECT_TRUE(near(Peak(Chip("v7x"), Chip("v7x").mxu.passes_fp8), 4.6e15));
  EXPECT_TRUE(near(Peak(Chip("8i"), Chip("8i").mxu.passes_fp8), 8.808e15));
  EXPECT_TRUE(near(Peak(Chip("8t"), Chip("8t").mxu.passes_fp8), 5.9769e15));
  EXPECT_TRUE(near(Peak(Chip("8t"), Chip("8t").mxu.passes_int4), 1.19538e16));
  // No narrow format of its own: as slow as bf16.
  for (const char* name : {"v2", "v3", "v4", "v4i"}) EXPECT_EQ(Chip(name).mxu.passes_int8, 1);
  EXPECT_EQ(Chip("v7x").mxu.passes_int8, 1);
}

TEST(ChipsTest, DmaLatenciesDifferByDirectionWhereTheyAreKnown) {
  EXPECT_EQ(Chip("v5p").dma.start_latency, Nanoseconds(667));
  EXPECT_EQ(Chip("v5p").dma.write_start_latency, Nanoseconds(624));
  EXPECT_EQ(Chip("v7x").dma.write_start_latency, Nanoseconds(594));
  // Not given: as in the other direction.
  EXPECT_EQ(Chip("v4").dma.write_start_latency, Chip("v4").dma.start_latency);
}

TEST(ChipsTest, CoresDevicesAndMegacore) {
  struct Expected {
    const char* chip;
    int64_t cores, devices, arrays_per_device;
  };
  for (const Expected& e :
       {Expected{"v2", 2, 2, 1}, Expected{"v3", 2, 2, 2}, Expected{"v4", 2, 1, 8},
        Expected{"v4i", 1, 1, 4}, Expected{"v5e", 1, 1, 4}, Expected{"v5p", 2, 1, 8},
        Expected{"v6e", 1, 1, 2}, Expected{"v7x", 2, 2, 2}, Expected{"8i", 2, 2, 2},
        Expected{"8t", 1, 1, 2}}) {
    const ChipParams chip = Chip(e.chip);
    EXPECT_EQ(chip.tensor_cores, e.cores) << e.chip;
    EXPECT_EQ(chip.devices, e.devices) << e.chip;
    EXPECT_EQ(chip.MxusPerDevice(), e.arrays_per_device) << e.chip;
    EXPECT_EQ(chip.CoresPerDevice(), e.cores / e.devices) << e.chip;
  }
}

TEST(ChipsTest, MemoryPerChip) {
  struct Expected {
    const char* chip;
    double bytes_per_second;  // of the chip
    double gib;               // of the chip
    double usable_gib;        // of a device
  };
  for (const Expected& e :
       {Expected{"v2", 7.16e11, 16, 7.48}, Expected{"v3", 9e11, 32, 15.48},
        Expected{"v4", 1.23e12, 32, 31.75}, Expected{"v4i", 6.14e11, 8, 7.75},
        Expected{"v5e", 8.19e11, 16, 15.75}, Expected{"v5p", 2.765e12, 96, 95.74},
        Expected{"v6e", 1.638e12, 32, 31.25}, Expected{"v7x", 7.38e12, 192, 94.75},
        Expected{"8i", 8.6e12, 288, 142.75}, Expected{"8t", 6.4e12, 215, 213.75}}) {
    const ChipParams chip = Chip(e.chip);
    const double devices = static_cast<double>(chip.devices);
    EXPECT_DOUBLE_EQ(chip.hbm.bytes_per_second.value() * devices, e.bytes_per_second) << e.chip;
    EXPECT_EQ(static_cast<double>(chip.hbm.bytes.value()) * devices, e.gib * kGiB) << e.chip;
    EXPECT_NEAR(static_cast<double>((chip.hbm.bytes - chip.hbm.reserved_bytes).value()),
                e.usable_gib * kGiB, 1)
        << e.chip;
  }
}

TEST(ChipsTest, LinksAndOnChipMemory) {
  struct Expected {
    const char* chip;
    int64_t links;
    double one_way;
    int64_t vmem_mib;  // per core
  };
  for (const Expected& e :
       {Expected{"v2", 4, 6.2e10, 16}, Expected{"v3", 4, 8.3e10, 16}, Expected{"v4", 6, 4.5e10, 16},
        Expected{"v5e", 4, 4.5e10, 128}, Expected{"v5p", 6, 9e10, 64},
        Expected{"v6e", 4, 9e10, 128}, Expected{"v7x", 6, 9e10, 64}}) {
    const ChipParams chip = Chip(e.chip);
    EXPECT_EQ(chip.slices.Links(), e.links) << e.chip;
    EXPECT_EQ(chip.ici.link_bytes_per_second.value(), e.one_way) << e.chip;
    EXPECT_EQ(chip.vmem.bytes, Bytes(e.vmem_mib * kMiB)) << e.chip;
    EXPECT_EQ(chip.ici.die_to_die_bytes_per_second.value() > 0, chip.devices == 2) << e.chip;
  }
  EXPECT_EQ(Chip("v4i").slices.Links(), 2);  // four chips as a square
  EXPECT_EQ(Chip("8i").slices.Links(), 0);   // one
  // All-reduce of a pod, both directions of a ring per link: v3 340 TB/s of 1024
  // chips with 4 links, v4 1.1 PB/s of 4096 with 6.
  EXPECT_NEAR(3.4e14 / 1024 / 4 / Chip("v3").ici.link_bytes_per_second.value(), 1, 0.01);
  EXPECT_NEAR(1.1e15 / 4096 / 6 / Chip("v4").ici.link_bytes_per_second.value(), 1, 0.01);
  EXPECT_EQ(Chip("v4").cmem.bytes, Bytes(128 * kMiB));
  // Half a register of 4096 B per bundle and core, at 1.05 GHz.
  EXPECT_NEAR(Chip("v4").cmem.bytes_per_second.value(), 2 * 2048 * 1.05e9, 1e10);
  EXPECT_NEAR(Chip("v4i").cmem.bytes_per_second.value(), 2048 * 1.05e9, 1e10);
  EXPECT_EQ(Chip("v5p").cmem.bytes, Bytes(0));
  EXPECT_EQ(Chip("v7x").sparse_core.count, 4);
  EXPECT_EQ(Chip("v5e").sparse_core.count, 0);
}

TEST(ChipsTest, V7xReproducesItsAllGather) {
  // tpu-recipes: all-gather over 2x2x1, 64 MiB per device: a chip receives six
  // shards over two links and two hops away: 11 + 2 + 402.7e6 / 1.8e11 = 2250 us.
  const IciParams ici = Chip("v7x").ici;
  const double rate = 2 * ici.link_bytes_per_second.value() * ici.unwrapped_efficiency;
  const double us = ToMicroseconds(ici.launch + ici.hop_latency * 2) +
                    6 * 64.0 * static_cast<double>(kMiB) / rate * 1e6;
  EXPECT_NEAR(us, 2252.3, 3);
}

TEST(ChipsTest, WrapsAsDocumented) {
  const auto wraps = [](const char* text) {
    const absl::StatusOr<Config> config = LoadConfig(text, {});
    EXPECT_TRUE(config.ok()) << Message(config.status());
    const Topology& t = config->topology;
    return std::vector<bool>{t.wraps(0), t.wraps(1), t.wraps(2)};
  };
  const auto none = ElementsAre(false, false, false);
  const auto all = ElementsAre(true, true, true);
  for (const char* text : {"v2-4x4", "v2-8x16", "v3-16x32", "v4-2x4x4", "v4-2x2x4", "v5e-8x8",
                           "v5p-2x2x4", "v5p-2x4x4", "v6e-8x8", "v7x-2x4x4", "v4i-2x2"}) {
    EXPECT_THAT(wraps(text), none) << text;
  }
  for (const char* text :
       {"v4-4x4x4", "v4-16x16x16", "v5p-4x4x8", "v5p-16x16x24", "v7x-4x4x4", "v7x-16x24x24"}) {
    EXPECT_THAT(wraps(text), all) << text;
  }
  EXPECT_THAT(wraps("v2-16x16"), ElementsAre(true, true, false));
  EXPECT_THAT(wraps("v3-32x32"), ElementsAre(true, true, false));
  EXPECT_THAT(wraps("v6e-8x16"), ElementsAre(false, true, false));
  EXPECT_THAT(wraps("v6e-16x16"), ElementsAre(true, true, false));
}

TEST(ChipsTest, TwistedToriByName) {
  const Config config = LoadConfig("v5p-4x4x8_twisted", {}).value();
  EXPECT_EQ(config.name, "v5p-4x4x8_twisted");
  EXPECT_TRUE(config.topology.twisted());
  EXPECT_FALSE(config.topology.wraps(0));
  EXPECT_TRUE(config.topology.wraps(2));
  EXPECT_TRUE(LoadConfig("v4-12x12x24_twisted", {}).ok());
  EXPECT_FALSE(LoadConfig("v4-4x4x8", {})->topology.twisted());
  const auto error = [](const char* text) { return Message(LoadConfig(text, {}).status()); };
  EXPECT_THAT(error("v4-8x8x8_twisted"), HasSubstr("v4 has no twisted torus of 8x8x8: one side"));
  EXPECT_THAT(error("v4-1x1x1_twisted"), HasSubstr("no twisted torus"));
  EXPECT_THAT(error("v7x-4x4x8_twisted"), HasSubstr("its tori are not twisted"));
  EXPECT_THAT(error("v5e-16x16_twisted"), HasSubstr("its tori are not twisted"));
  EXPECT_THAT(error("v4-4x4x9_twisted"), HasSubstr("no slice 4x4x9"));
}

TEST(ChipsTest, SlicesThatDoNotExistNameTheNearest) {
  const auto error = [](const char* text) { return Message(LoadConfig(text, {}).status()); };
  EXPECT_THAT(error("v5p-4x4x2"), HasSubstr("the nearest is 2x4x4;"));
  EXPECT_THAT(error("v5p-4x4x2"), HasSubstr("`tpusim configs` lists all"));
  // 63 chips: 64 are nearest.
  EXPECT_THAT(error("v4-7x3x3"), HasSubstr("the nearest is 4x4x4;"));
  EXPECT_THAT(error("v6e-32x32"), HasSubstr("the nearest is 16x16;"));
}

TEST(ChipsTest, OtherNamesLeadToTheChip) {
  const auto error = [](const char* text) { return Message(LoadConfig(text, {}).status()); };
  EXPECT_THAT(error("tpu7-2x2x1"), HasSubstr("unknown chip \"tpu7\"; the nearest is v7x"));
  EXPECT_THAT(error("Trillium-2x2"), HasSubstr("the nearest is v6e"));
  EXPECT_THAT(error("v5f-2x4"), HasSubstr("the nearest is v5e"));
}

TEST(HostsTest, ChipsOfAHostFormABox) {
  const auto hosts = [](const char* text) { return HostCount(LoadConfig(text, {}).value()); };
  // The Cloud documentation: v5e 2x2, 2x4, 4x4, 4x8, 16x16; v5p 2x2x1, 2x2x2,
  // 2x4x4, 4x4x8, 16x16x24.
  EXPECT_EQ(hosts("v5e-2x2"), 1);
  EXPECT_EQ(hosts("v5e-2x4"), 1);
  EXPECT_EQ(hosts("v5e-4x4"), 2);
  EXPECT_EQ(hosts("v5e-4x8"), 4);
  EXPECT_EQ(hosts("v5e-16x16"), 32);
  EXPECT_EQ(hosts("v5p-2x2x1"), 1);
  EXPECT_EQ(hosts("v5p-2x2x2"), 2);
  EXPECT_EQ(hosts("v5p-2x4x4"), 8);
  EXPECT_EQ(hosts("v5p-4x4x8"), 32);
  EXPECT_EQ(hosts("v5p-16x16x24"), 1536);
  EXPECT_EQ(hosts("v7x-2x2x1"), 1);
  // Hosts of 4x2 on an 8x4: 0 0 0 0 1 1 1 1 in the first two rows.
  const Config config = LoadConfig("v5e-8x4", {}).value();
  EXPECT_EQ(HostOf(config, 3), 0);
  EXPECT_EQ(HostOf(config, 4), 1);
  EXPECT_EQ(HostOf(config, 11), 0);
  EXPECT_EQ(HostOf(config, 16), 2);
  EXPECT_EQ(HostOf(config, 31), 3);
}

TEST(ChipsTest, BorrowedAndAssumedValuesSaySo) {
  // A source is a document, a derivation, or one of these words.
  const auto source = [](const std::string& chip, const char* path) {
    const ChipFile file = LoadChip(chip, "").value();
    return file.provenance[static_cast<size_t>(FindParameter(path) - ChipParameters().data())]
        .source;
  };
  EXPECT_THAT(source("v5p", "ici.wrapped_efficiency"), HasSubstr("borrowed from v5e"));
  EXPECT_THAT(source("v6e", "ici.launch_ns"), HasSubstr("borrowed from v5e"));
  EXPECT_THAT(source("v7x", "ici.reduce_window_bytes"), HasSubstr("borrowed from v6e"));
  EXPECT_THAT(source("v2", "host.pcie_bytes_per_second"), HasSubstr("borrowed from v4"));
  EXPECT_THAT(source("8i", "ici.link_bytes_per_second"), HasSubstr("borrowed from v7x"));
  EXPECT_THAT(source("v3", "ici.die_to_die_bytes_per_second"), HasSubstr("borrowed from v2"));
  EXPECT_THAT(source("v2", "host.dcn_latency_ns"), HasSubstr("assumed"));
  // And what a measurement set says which.
  EXPECT_THAT(source("v2", "ici.die_to_die_bytes_per_second"), HasSubstr("fitted: "));
  EXPECT_THAT(source("v6e", "ici.wrapped_efficiency"), HasSubstr("V28"));
  EXPECT_THAT(source("v7x", "chip.mxu.efficiency"), HasSubstr("V26"));
}

}  // namespace
}  // namespace tpusim::configs
