#include "tools/tpusim/find/judge.h"

#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <string>

#include "configs/status_macros.h"
#include "tests/temporary_folder.h"
#include "tools/tpusim/find/key.h"
#include "tools/tpusim/find/variant_judge.h"

namespace tpusim::tools {
namespace {

using search::Verdict;

class JudgeTest : public testing::Test {
 protected:
  JudgeTest() {
    std::ofstream(file_) << R"(HloModule step
ENTRY main {
  x = bf16[512,512]{1,0} parameter(0)
  ROOT y = bf16[512,512]{1,0} dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
)";
    auto judge = VariantJudge::Of(file_, {});
    EXPECT_TRUE(judge.ok()) << judge.status();
    judge_ = *std::move(judge);
  }
  Verdict Of(const std::string& slice, const ProgramFlags& flags, bool simulated = true) {
    const MachineFlags machine;
    auto verdict = judge_->Of(slice, flags, simulated ? &machine : nullptr);
    EXPECT_TRUE(verdict.ok()) << verdict.status();
    return *std::move(verdict);
  }

  const TemporaryFolder folder_;
  const std::string file_ = (folder_.path() / "step.hlo").string();
  std::unique_ptr<VariantJudge> judge_;
};

TEST_F(JudgeTest, KnowsAProgramThatItHasSeen) {
  const Verdict first = Of("v5e-1x1", {});
  EXPECT_EQ(first.kind, Verdict::Kind::kSimulated);
  EXPECT_GT(first.step, Picoseconds(0));
  EXPECT_TRUE(first.compiled && first.simulated && !first.equal);
  ProgramFlags ids;
  ids.device_order = "ids";  // says the same
  const Verdict again = Of("v5e-1x1", ids);
  EXPECT_EQ(again.step, first.step);
  EXPECT_EQ(again.peak, first.peak);
  EXPECT_TRUE(again.equal && !again.compiled && !again.simulated);
  // Other options make another program of it, whatever becomes of them.
  ProgramFlags other;
  other.passes = "-fusion";
  EXPECT_FALSE(Of("v5e-1x1", other).equal);
}

TEST_F(JudgeTest, APeakIsThatOfEverySliceThatAnswersAlike) {
  const Verdict first = Of("v5e-1x1", {}, /*simulated=*/false);
  EXPECT_EQ(first.kind, Verdict::Kind::kFits);
  EXPECT_TRUE(first.compiled);
  const Verdict larger = Of("v5e-4x2", {}, /*simulated=*/false);
  EXPECT_EQ(larger.peak, first.peak);
  EXPECT_FALSE(larger.compiled);
  EXPECT_TRUE(Of("v6e-1x1", {}, /*simulated=*/false).compiled);
}

TEST_F(JudgeTest, SaysByHowMuchAProgramIsTooLarge) {
  ProgramFlags small;
  small.overrides = {"chip.hbm.bytes=64KiB", "chip.hbm.reserved_bytes=0"};
  for (const bool simulated : {false, true}) {
    const Verdict verdict = Of("v5e-1x1", small, simulated);
    EXPECT_EQ(verdict.kind, Verdict::Kind::kTooLarge);
    EXPECT_GT(verdict.peak, verdict.usable);
    EXPECT_NE(verdict.why, "");
  }
}

TEST_F(JudgeTest, StopsAtABoundThatExcludesATrial) {
  auto imported = hlo::ImportFile(file_);
  ASSERT_TRUE(imported.ok());
  const auto program = compiler::Normalise(*std::move(imported));
  ASSERT_TRUE(program.ok());
  const Source source{.file = file_, .import = nullptr, .normalised = &*program};
  const auto machine = MachineOf("v5e-1x1", {});
  ASSERT_TRUE(machine.ok());
  const sim::SimulationOptions simulation;
  const compiler::CompileOptions options;
  const ProgramFlags flags;
  const auto judged = [&](Picoseconds cutoff, Judge& judge) {
    return judge
        .Of({.source = source,
             .machine = *machine,
             .flags = flags,
             .options = options,
             .key = "",
             .simulation = &simulation,
             .bounds = true,
             .cutoff = cutoff})
        .value();
  };
  Judge judge, other;
  const Verdict bounded = judged(Picoseconds(1), judge);
  EXPECT_EQ(bounded.kind, Verdict::Kind::kBounded);
  EXPECT_FALSE(bounded.simulated);
  EXPECT_TRUE(judged(Picoseconds(INT64_MAX), judge).equal);
  const Verdict simulated = judged(Picoseconds(INT64_MAX), other);
  EXPECT_EQ(simulated.kind, Verdict::Kind::kSimulated);
  EXPECT_LE(bounded.bound, simulated.step);
  EXPECT_GT(bounded.bound, Picoseconds(0));
}

TEST(VerdictText, IsReadBackAsItWas) {
  Verdict verdict;
  verdict.kind = Verdict::Kind::kTooLarge;
  verdict.bound = Picoseconds(3);
  verdict.step = Picoseconds(5);
  verdict.peak = Bytes(7);
  verdict.usable = Bytes(11);
  verdict.equal = verdict.simulated = true;
  verdict.why = "needs \"7\" bytes";
  verdict.program = "p";
  const Verdict read = VerdictOf(ToText(verdict));
  EXPECT_EQ(ToText(read), ToText(verdict));
  EXPECT_EQ(read.usable, Bytes(11));
  EXPECT_EQ(read.why, verdict.why);
  EXPECT_FALSE(read.compiled);
}

}  // namespace
}  // namespace tpusim::tools
