#include "configs/policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "configs/chip_file.h"
#include "configs/chip_schema.h"
#include "configs/config.h"
#include "configs/status_macros.h"
#include "configs/xla_flags.h"
#include "tests/temporary_folder.h"

namespace tpusim::configs {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

Policy PolicyOf(const std::string& chip) { return LoadChip(chip, "")->chip.compiler; }

ParameterInfo RowOf(const std::string& chip, const std::string& name) {
  const auto rows = DescribeCompiler(chip).value();
  for (const ParameterInfo& row : rows) {
    if (row.path == "compiler." + name) return row;
  }
  ADD_FAILURE() << "no value " << name;
  return {};
}

TEST(PolicyTest, AValueIsTheChipsOwnElseThatOfTheOneItIsLike) {
  EXPECT_EQ(PolicyOf("v5e").windowed_flops_per_byte, 2190);
  EXPECT_EQ(PolicyOf("v2").windowed_flops_per_byte, 0);  // says so itself
  EXPECT_EQ(PolicyOf("v5p").gathers_in_flight, 0);
  EXPECT_EQ(PolicyOf("v4").gathers_in_flight, 0);  // like v5p
  EXPECT_EQ(PolicyOf("8t").gathers_in_flight, 1);  // that of all
  EXPECT_TRUE(PolicyOf("v4").products_in_vmem);
  EXPECT_FALSE(PolicyOf("v5p").products_in_vmem);
  EXPECT_EQ(PolicyOf("v6e").single_phase_most_bytes, Bytes(10 * kKiB));
}

TEST(PolicyTest, AModuleHasTheNewestFileThatIsNotNewer) {
  const std::vector<std::string> names = CompilerNames();
  ASSERT_EQ(names.front(), "libtpu-0.0.42");
  EXPECT_EQ(names.back(), CompilerName());
  EXPECT_EQ(CompilerOf("0.0.42.1"), "libtpu-0.0.42");
  EXPECT_EQ(CompilerOf("0.0.50"), "libtpu-0.0.42");
  EXPECT_EQ(CompilerOf("0.0.9"), "libtpu-0.0.42");  // older than all
  EXPECT_EQ(CompilerOf("0.0.52"), "libtpu-0.0.52");
  EXPECT_EQ(CompilerOf("0.1"), CompilerName());
  // A library that says its build alone.
  EXPECT_EQ(CompilerOf("Built on Jun 17 2026 11:08:48 (1781719728) cl/933746096"), names.front());
  EXPECT_EQ(CompilerOf("cl/1014260216"), "libtpu-0.0.42");
  EXPECT_EQ(CompilerOf("cl/1014260217"), "libtpu-0.0.52");
  for (const char* none : {"", "nightly", "cl/", "0.0.x"}) {
    EXPECT_EQ(CompilerOf(none), CompilerName()) << none;
  }
}

TEST(PolicyTest, AFileHasWhatItLeavesOutOfTheOneThatItIsLike) {
  for (const std::string& name : CompilerNames()) {
    const Policy policy = LoadChip("v4", "", name)->chip.compiler;
    EXPECT_EQ(policy.compiler, name);
    EXPECT_EQ(policy.like, "v5p");
    EXPECT_EQ(policy.fusion_most_operands, PolicyOf("v4").fusion_most_operands);
  }
  EXPECT_EQ(LoadConfig("v5e-4x2", {}, "libtpu-0.0.42")->chip.compiler.compiler, "libtpu-0.0.42");
  EXPECT_THAT(std::string(LoadConfig("v5e-4x2", {}, "libtpu-0.0.43").status().message()),
              StartsWith("unknown compiler \"libtpu-0.0.43\"; the nearest is libtpu-0.0.4"));
}

TEST(PolicyTest, EveryValueHasASourceABracketAndItsFlag) {
  for (const std::string& chip : ChipNames()) {
    const auto rows = DescribeCompiler(chip).value();
    for (const ParameterInfo& row : rows) {
      EXPECT_GE(row.source.size(), 5u) << chip << " " << row.path;
      if (row.path.starts_with(kPolicyPrefix)) {
        EXPECT_GE(row.bracket.size(), 5u) << chip << " " << row.path;
      }
    }
  }
  const ParameterInfo limit = RowOf("v5e", "windowed_flops_per_byte");
  EXPECT_EQ(limit.value, "2190");
  EXPECT_EQ(limit.bracket, "2048 is none, 2304 is one");
  EXPECT_THAT(RowOf("v4", "gathers_in_flight").source, StartsWith("borrowed from v5p"));
  EXPECT_EQ(RowOf("v5p", "products_in_vmem").value, "false");
  EXPECT_EQ(RowOf("v6e", "fusion_most_operands").flag, "xla_tpu_multioutput_fusion_max_operands");
}

TEST(PolicyTest, ValuesAreSetByNumberAndByWord) {
  const Config config = LoadConfig("v5e-4x2", {"compiler.windowed_einsum_most_members=8",
                                               "compiler.products_in_vmem=false",
                                               "compiler.all_reduce_combined_bytes=1MiB"})
                            .value();
  EXPECT_EQ(config.chip.compiler.windowed_einsum_most_members, 8);
  EXPECT_FALSE(config.chip.compiler.products_in_vmem);
  EXPECT_EQ(config.chip.compiler.all_reduce_combined_bytes, Bytes(kMiB));
  EXPECT_THAT(config.warnings, IsEmpty());
  // The compiler knows all of them: none is a speed of the machine.
  const std::vector<std::string> set = {"compiler.resident_vmem_share=0.5",
                                        "chip.hbm.efficiency=0.5"};
  EXPECT_THAT(WithoutSpeeds(set, LoadConfig("v5e-4x2", set).value()), ElementsAre(set[0]));
  // A word that was so already is said as a word.
  EXPECT_THAT(LoadConfig("v5e-4x2", {"compiler.products_in_vmem=true"})->warnings,
              ElementsAre("setting compiler.products_in_vmem to true changes nothing: it was so "
                          "already"));
}

TEST(PolicyTest, FaultsSayWhatIsWanted) {
  const auto fault = [](const std::string& set) {
    return Message(LoadConfig("v5e-4x2", {set}).status());
  };
  EXPECT_EQ(fault("compiler.products_in_vmem=no"),
            "--set compiler.products_in_vmem=no: \"no\" is not false or true");
  EXPECT_THAT(fault("compiler.windowed_gathers=1"), HasSubstr("\"1\" is not false or true"));
  EXPECT_THAT(fault("compiler.window_register=5"),
              HasSubstr("no parameter compiler.window_register; the nearest is "
                        "compiler.window_registers"));
  EXPECT_THAT(fault("compiler.scheduled_percent=101"), HasSubstr("from 1 to 100, in percent"));
}

TEST(PolicyTest, AConfigurationFileSetsWordsToo) {
  const TemporaryFolder folder;
  const std::string path = folder / "policy.json";
  const auto load = [&path](const std::string& value) {
    std::ofstream(path)
        << R"({"chip": "v5e", "slice": "4x2", "set": {"compiler.products_in_vmem": )" << value
        << "}}";
    return LoadConfig(path, {});
  };
  EXPECT_FALSE(load("false")->chip.compiler.products_in_vmem);
  EXPECT_THAT(Message(load("0").status()),
              HasSubstr("set compiler.products_in_vmem must be false or true"));
}

TEST(PolicyTest, AChipOfOnesOwnFollowsItsBaseOrAnother) {
  const auto parse = [](const std::string& text) { return ParseChip(text, "my.json", ""); };
  const auto v6e = parse(R"({"base": "v5e", "compiler": {"like": "v6e", "copies_in_flight": 2}})");
  ASSERT_TRUE(v6e.ok()) << Message(v6e.status());
  EXPECT_EQ(v6e->chip.compiler.like, "v6e");
  EXPECT_EQ(v6e->chip.compiler.windowed_flops_per_byte, 5100);
  EXPECT_EQ(v6e->chip.compiler.copies_in_flight, 2);
  const auto provenance = [&](const char* path) {
    return v6e->provenance[FindParameter(path) - ChipParameters().data()];
  };
  EXPECT_EQ(provenance("compiler.copies_in_flight").source, "my.json");
  EXPECT_EQ(provenance("compiler.windowed_flops_per_byte").bracket, "4864 is none, 5376 is one");
  const auto words = parse(R"({"base": "v5e", "compiler": {"products_in_vmem": false,
      "windowed_gathers": {"value": false, "source": "a wish"}}})");
  ASSERT_TRUE(words.ok()) << Message(words.status());
  EXPECT_FALSE(words->chip.compiler.products_in_vmem);
  EXPECT_FALSE(words->chip.compiler.windowed_gathers);
  EXPECT_THAT(
      Message(parse(R"({"base": "v5e", "compiler": {"like": "v6"}})").status()),
      StartsWith("my.json: compiler.like: unknown chip \"v6\"; the nearest is v6e (chips: 8i, "));
  EXPECT_THAT(Message(parse(R"({"base": "v5e", "compiler": {"products_in_vmem": 1}})").status()),
              HasSubstr("compiler.products_in_vmem: the value must be false or true"));
}

// A flag that stands beside a value sets it, in its own unit.
TEST(PolicyTest, EveryFlagOfTheFileHasAnEffect) {
  int flags = 0;
  const auto rows = DescribeCompiler("v5e").value();
  for (const ParameterInfo& row : rows) {
    if (row.flag.empty()) continue;
    ++flags;
    const Parameter& parameter = *FindParameter(row.path);
    EXPECT_EQ(ParameterOfFlag(row.flag), &parameter);
    ChipParams chip = LoadChip("v5e", "")->chip;
    const double before = parameter.get(chip);
    const bool enables = row.flag.find("_enable_") != std::string::npos;
    const std::string value = enables ? "false" : parameter.integer ? "7" : "0.75";
    EXPECT_THAT(ApplyXlaFlags("--" + row.flag + "=" + value, chip).value(), IsEmpty()) << row.flag;
    EXPECT_NE(parameter.get(chip), before) << row.flag;
  }
  EXPECT_EQ(flags, 20);
  ChipParams chip = LoadChip("v7x", "")->chip;
  EXPECT_THAT(ApplyXlaFlags("--xla_jf_single_phase_ring_max_kib=64 "
                            "--xla_jf_crs_combiner_threshold_in_bytes=1000 "
                            "--xla_msa_max_overlap_to_async_copy_ratio=4.5 "
                            "--xla_tpu_sparse_core_all_reduce_offload_min_size_in_bytes=131072 "
                            "--xla_tpu_enable_sparse_core_collective_offload_all_gather",
                            chip)
                  .value(),
              IsEmpty());
  EXPECT_EQ(chip.compiler.single_phase_most_bytes, Bytes(64 * kKiB));
  EXPECT_EQ(chip.compiler.all_reduce_combined_bytes, Bytes(1000));
  EXPECT_EQ(chip.compiler.prefetch_most_overlap, 4.5);
  // v7x off-loads all-reduces already; all-gathers follow the same size.
  EXPECT_EQ(chip.sparse_core.offload_all_reduce, Bytes(128 * kKiB));
  EXPECT_EQ(chip.sparse_core.offload_all_gather, Bytes(128 * kKiB));
  EXPECT_EQ(chip.sparse_core.offload_reduce_scatter, Bytes(64 * kKiB));
  EXPECT_THAT(
      Message(ApplyXlaFlags("--xla_tpu_multioutput_fusion_max_operands=1.5", chip).status()),
      HasSubstr("a whole number from 1 to 1048576 is wanted"));
}

}  // namespace
}  // namespace tpusim::configs
