#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "configs/digest.h"
#include "tools/tpusim/command_line/program_flags.h"
#include "tools/tpusim/find/key.h"

namespace tpusim::tools {
namespace {

// Options of the output, and questions beside the step: no verdict depends on them.
const std::set<std::string> kShown = {"quiet", "verbose", "pass-timings", "help"};

// A value of each option; flags have none.
const std::map<std::string, std::string> kValues = {
    {"set", "chip.hbm.efficiency=0.5"},
    {"compiler", "libtpu-0.0.42"},
    {"trip-count", "*=3"},
    {"kernel-cost", "flash*=12.5us"},
    {"branch", "*=1"},
    {"ragged", "*=1,2"},
    {"routing", "zipf:1.1"},
    {"kernel-time", "compiler"},
    {"passes", "-fusion"},
    {"xla-flags", "--xla_tpu_scoped_vmem_limit_kib=1"},
    {"mesh", "x=4"},
    {"shard", "x=P()"},
    {"constrain", "x=P()"},
    {"remat", "x=saved"},
    {"donate-argument", "x"},
    {"keep-argument", "x"},
    {"device-order", "ids"},
    {"algorithm", "best"},
    {"fold", "off"},
    {"detail", "tile"},
    {"slow", "chip=3:0.8"},
    {"link", "3:x+=0.5"},
    {"max-events", "7"},
    {"exact-under", "7"},
};

std::string DigestOf(const std::vector<std::string>& words) {
  CLI::App app;
  ProgramFlags program;
  MachineFlags machine;
  AddProgramFlags(app, program);
  AddMachineFlags(app, machine);
  app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  configs::Digest digest;
  AddTo(digest, program);
  AddTo(digest, machine);
  return digest.Text();
}

// An option that is added is in the key of a store, or among those that are shown.
TEST(SearchKeyTest, EveryOptionOfProgramAndMachineCounts) {
  CLI::App app;
  ProgramFlags program;
  MachineFlags machine;
  AddProgramFlags(app, program);
  AddMachineFlags(app, machine);
  const std::string without = DigestOf({});
  std::set<std::string> digests = {without};
  size_t options = 0;
  for (const CLI::Option* option : app.get_options()) {
    const std::string name = option->get_lnames().front();
    std::vector<std::string> words = {"--" + name};
    if (option->get_items_expected_max() > 0) {
      ASSERT_TRUE(kValues.contains(name)) << "--" << name << " needs a value in this test";
      words.push_back(kValues.at(name));
    }
    if (name == "help") continue;
    if (kShown.contains(name)) {
      EXPECT_EQ(DigestOf(words), without) << name;
      continue;
    }
    EXPECT_TRUE(digests.insert(DigestOf(words)).second) << name;
    ++options;
  }
  EXPECT_GE(options, kValues.size());
}

TEST(SearchKeyTest, OptionsAreNotRunTogether) {
  EXPECT_NE(DigestOf({"--set", "a=1", "--set", "b=2"}), DigestOf({"--set", "b=2", "--set", "a=1"}));
  EXPECT_NE(DigestOf({"--shard", "x=P()"}), DigestOf({"--constrain", "x=P()"}));
  EXPECT_EQ(DigestOf({"--fold", "off", "--donate"}), DigestOf({"--donate", "--fold", "off"}));
}

TEST(BuildIdTest, IsThatOfThisProgram) {
  const std::string id = BuildId().value();
  EXPECT_EQ(id.size(), 32u);
  EXPECT_EQ(id, BuildId().value());
}

}  // namespace
}  // namespace tpusim::tools
