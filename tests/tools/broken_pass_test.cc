#include "tools/tpusim/pipeline/broken_pass.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <regex>

#include "absl/strings/str_split.h"
#include "configs/config.h"
#include "configs/status_macros.h"
#include "tests/temporary_folder.h"
#include "tests/workloads/passes/fake_costs.h"
#include "tools/tpusim/command_line/command.h"
#include "tools/tpusim/output/outputs.h"
#include "tools/tpusim/output/shell_word.h"
#include "workloads/hlo/io/import.h"
#include "workloads/hlo/io/printer.h"
#include "workloads/target/target.h"

namespace tpusim::tools {
namespace {

using passes::OptionValues;
using passes::Pass;
using passes::PassContext;
using testing::HasSubstr;

constexpr char kModule[] = R"(HloModule m
ENTRY e {
  p = f32[8] parameter(0)
  ROOT t = f32[8] tanh(p)
}
)";

absl::StatusOr<bool> Negate(hlo::Module& module, const PassContext&, const OptionValues&) {
  hlo::Instruction* const root = module.entry()->root();
  module.entry()->set_root(module.entry()->Add(hlo::Opcode::kNegate, root->shape(), {root}));
  return true;
}
absl::StatusOr<bool> BreakShapes(hlo::Module& module, const PassContext&, const OptionValues&) {
  module.entry()->root()->set_shape(hlo::MakeShape(hlo::PrimitiveType::kF32, {7}));
  return true;
}
absl::StatusOr<bool> BreakInvariant(hlo::Module& module, const PassContext&, const OptionValues&) {
  TPUSIM_CHECK(module.entry() == nullptr, "on purpose");
  return true;
}

// A compilation of two passes, of which the second is broken. Its name and its option are those of
// one that there is, so that the command that is left behind can be run.
class BrokenPassTest : public testing::Test {
 protected:
  void SetUp() override {
    before_ = std::filesystem::current_path();
    folder_ = made_.path() / "broken pass";
    std::filesystem::create_directories(folder_);
    std::filesystem::current_path(folder_);
  }
  void TearDown() override {
    std::filesystem::current_path(before_);
    std::filesystem::remove_all(folder_);
  }

  absl::Status Run(passes::PassWatch& watch, bool breaks_invariant = false) {
    const Pass negate = {"negate", "", passes::Phase::kOptimize, Negate};
    const Pass broken = {"async-collectives",
                         "",
                         passes::Phase::kOptimize,
                         breaks_invariant ? BreakInvariant : BreakShapes,
                         {{"permutes", "on", ""}, {"other", "x", ""}}};
    ASSIGN_OR_RETURN(const hlo::ImportedWorkload imported, hlo::Import(kModule, "m"));
    ASSIGN_OR_RETURN(const configs::Config config, configs::LoadConfig("v5e-2x2", {}));
    const target::Target target(config);
    passes::FakeCosts costs;
    passes::PipelineOptions options;
    options.watch = &watch;
    std::vector<passes::PassRun> runs;
    return passes::RunPipeline({{&negate, {}, {}},
                                {&broken, {{"permutes", "off"}, {"other", "x"}}, {}}},
                               *imported.module, {target, costs}, options, runs)
        .status();
  }
  BrokenPass::Replay Replay(bool breaks_invariant = false) {
    return [=, this](passes::PassWatch& watch, BrokenPass::Compiled& compiled) {
      compiled.partitions = 4;
      compiled.device_of_partition = {0, 1, 3, 2};
      return Run(watch, breaks_invariant);
    };
  }
  std::vector<std::string> Files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      names.push_back(entry.path().filename());
    }
    return names;
  }

  TemporaryFolder made_;
  std::filesystem::path before_, folder_;
};

TEST_F(BrokenPassTest, LeavesTheModuleAndTheCommandThatBreaksItAgain) {
  ProgramFlags flags;
  flags.trip_counts = {"while*=3"};
  flags.algorithms = {"best"};
  BrokenPass broken(Replay(), OptOptionsOf("v5e-2x2", {"hbm.efficiency=0.5"}, flags));
  const absl::Status status = broken.Explained(Run(broken));
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  const std::string says = Message(status);
  EXPECT_THAT(says, HasSubstr("the module is wrong after pass async-collectives: "));
  ASSERT_EQ(Files().size(), 1u);
  const std::string file = Files().front();
  EXPECT_TRUE(std::regex_match(file, std::regex("tpusim-crash-async-collectives-[0-9a-f]{8}.hlo")));
  EXPECT_THAT(says, HasSubstr("; the module before pass async-collectives{permutes=off} is in " +
                              file + "; to repeat: tpusim opt " + file +
                              " --config v5e-2x2 --set hbm.efficiency=0.5 --trip-count "
                              "\"while*=3\" --algorithm best --device-order 0,1,3,2 --passes "
                              "\"async-collectives{permutes=off}\""));
  const auto left = hlo::ImportFile(file);
  ASSERT_TRUE(left.ok()) << left.status();
  EXPECT_EQ(left->num_partitions, 4);
  // What the first pass did is there, and nothing of the second.
  const hlo::Instruction* const root = left->module->entry()->root();
  EXPECT_EQ(root->opcode(), hlo::Opcode::kNegate);
  EXPECT_EQ(root->shape().dims, std::vector<int64_t>{8});
}

TEST_F(BrokenPassTest, TheCommandRuns) {
  BrokenPass broken(Replay(), OptOptionsOf("v5e-2x2", {}, {}));
  const std::string says = Message(broken.Explained(Run(broken)));
  std::string command = says.substr(says.find("tpusim opt ") + std::string("tpusim ").size());
  std::erase(command, '"');  // as a shell does
  std::vector<std::string> words = absl::StrSplit(command, ' ');
  CLI::App app;
  const Command opt = AddOpt(app);
  words.insert(words.end(), {"-o", "again.hlo"});
  std::ranges::reverse(words);
  app.parse(words);
  const absl::Status done = opt.execute();
  ASSERT_TRUE(done.ok()) << done;
  const auto text = ReadText("again.hlo");
  ASSERT_TRUE(text.ok());
  EXPECT_THAT(*text, HasSubstr("negate("));
}

TEST_F(BrokenPassTest, OfBrokenInvariantsToo) {
  EXPECT_DEATH(
      {
        BrokenPass broken(Replay(true), OptOptionsOf("v5e-2x2", {}, {}));
        [[maybe_unused]] const absl::Status status = Run(broken, true);
      },
      "on purpose.*; the module before pass async-collectives.* is in tpusim-crash-.*; to repeat: "
      "tpusim opt tpusim-crash-");
  ASSERT_EQ(Files().size(), 1u);
  EXPECT_TRUE(hlo::ImportFile(Files().front()).ok());
}

TEST_F(BrokenPassTest, OutsideOfPassesThereIsNothingToLeave) {
  BrokenPass broken(Replay(), {});
  EXPECT_EQ(broken.Explained(absl::OkStatus()), absl::OkStatus());
  const absl::Status before = absl::InternalError("before any pass");
  EXPECT_EQ(broken.Explained(before), before);
  // What users got wrong is no bug.
  EXPECT_FALSE(Run(broken).ok());
  EXPECT_EQ(broken.Explained(UserError("theirs")), UserError("theirs"));
  EXPECT_TRUE(Files().empty());
}

TEST_F(BrokenPassTest, AFolderThatIsNotWritableIsNamed) {
  std::filesystem::remove_all(folder_);  // below our feet
  BrokenPass broken(Replay(), {});
  const std::string says = Message(broken.Explained(Run(broken)));
  EXPECT_THAT(says, HasSubstr("is not left: cannot write 'tpusim-crash-async-collectives-"));
  // An answer of one that came first does not hide another.
  BrokenPass elsewhere([](passes::PassWatch&, BrokenPass::Compiled&) { return UserError("gone"); }, {});
  EXPECT_THAT(Message(elsewhere.Explained(Run(elsewhere))),
              HasSubstr("is not known: compiled again, gone"));
}

TEST(ShellWord, IsQuotedWhereAShellReadsItOtherwise) {
  EXPECT_EQ(ShellWord("v5e-4x2"), "v5e-4x2");
  EXPECT_EQ(ShellWord("2x(v5e-16x16)"), "\"2x(v5e-16x16)\"");
  EXPECT_EQ(ShellWord("params['w']=$x"), "\"params['w']=\\$x\"");
  EXPECT_EQ(ShellWord(""), "\"\"");
}

}  // namespace
}  // namespace tpusim::tools
