// Statements about a program are in its text, and passes go by it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "configs/config.h"
#include "tests/workloads/passes/fake_costs.h"
#include "workloads/hlo/analysis/verify.h"
#include "workloads/hlo/io/printer.h"
#include "workloads/hlo/io/text_parser.h"
#include "workloads/passes/passes.h"
#include "workloads/passes/pipeline/pipeline.h"
#include "workloads/target/target.h"

namespace tpusim::passes {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class Annotated {
 public:
  explicit Annotated(std::string_view text)
      : config_(configs::LoadConfig("v5e-2x2", {}).value()),
        target_(config_),
        module_(hlo::ParseHloText(std::string(text)).value().module) {
    stated.partitions = 4;
  }

  // Whether anything changed. What passes say is in `runs`.
  absl::StatusOr<bool> Run(std::string_view passes) {
    PassContext context(target_, costs);
    context.stated = &stated;
    runs.clear();
    return RunPipeline(ParsePipeline(passes).value(), *module_, context, {}, runs);
  }
  std::string text() const { return hlo::ToString(*module_, {.large_constants = true}); }
  std::vector<std::string> warnings() const {
    std::vector<std::string> all;
    for (const PassRun& run : runs) {
      for (std::string& warning : TextsOf(run.records, Action::kWarned)) all.push_back(warning);
    }
    return all;
  }

  Statements stated;
  FakeCosts costs;
  std::vector<PassRun> runs;

 private:
  const configs::Config config_;
  const target::Target target_;
  std::unique_ptr<hlo::Module> module_;
};

// Writes; has nothing more to write, neither here nor into what is read from the text.
void ExpectRoundTrip(Annotated& module, const std::string& pass) {
  EXPECT_TRUE(module.Run(pass).value());
  EXPECT_FALSE(module.Run(pass).value());
  Annotated again(module.text());
  again.stated = module.stated;
  again.costs.trips = module.costs.trips;
  EXPECT_FALSE(again.Run(pass).value()) << module.text();
  EXPECT_EQ(again.text(), module.text());
  // Nor is anything forgotten where nothing is stated.
  again.stated = {};
  EXPECT_FALSE(again.Run(pass).value());
  EXPECT_EQ(again.text(), module.text());
}

constexpr std::string_view kBranches = R"(HloModule m
short { ROOT a = f32[512,512] parameter(0) }
long {
  b = f32[512,512] parameter(0)
  ROOT d = f32[512,512] dot(b, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
ENTRY e {
  x = f32[512,512] parameter(0)
  which = s32[] parameter(1)
  y = f32[512,512] collective-permute(x), source_target_pairs={{0,1},{1,0}}
  c = f32[512,512] conditional(which, x, x), branch_computations={short, long}
  z = f32[512,512] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = (f32[512,512], f32[512,512], f32[512,512]) tuple(y, c, z)
})";

TEST(Annotate, Branches) {
  Annotated module(kBranches);
  module.stated.branches = {{"c", "1"}, {"*", "0"}, {"d*", "longest"}};
  ExpectRoundTrip(module, "state-branches");
  EXPECT_THAT(module.text(), HasSubstr("tpusim.branch=\"1\""));
  ASSERT_FALSE(module.Run("state-branches").value());
  EXPECT_THAT(module.warnings(),
              ElementsAre("--branch d*=longest has no effect: its conditionals are c"));
  module.stated.branches = {{"*", "2"}};
  EXPECT_THAT(Message(module.Run("state-branches").status()),
              HasSubstr("has branches 0 to 1; give one of them or 'longest'"));
  Annotated plain("HloModule m ENTRY e { ROOT x = f32[8] parameter(0) }");
  plain.stated.branches = {{"*", "1"}};
  EXPECT_FALSE(plain.Run("state-branches").value());
  EXPECT_THAT(plain.warnings(),
              ElementsAre("--branch *=1 has no effect: the program has no conditional"));
}

TEST(Annotate, ABranchOfAFileHasToExist) {
  std::string text(kBranches);
  text.insert(text.find("branch_computations="), "frontend_attributes={tpusim.branch=\"7\"}, ");
  Annotated module(text);
  EXPECT_THAT(Message(module.Run("state-branches").status()),
              HasSubstr("is said to take branch '7' and has branches 0 to 1"));
}

TEST(Annotate, Arguments) {
  Annotated module(
      "HloModule m ENTRY e { x = f32[64] parameter(0) y = f32[64] parameter(1) "
      "ROOT z = f32[64] add(x, y) }");
  module.stated.argument_memories = {"device", "pinned_host"};
  module.stated.donate = true;
  ExpectRoundTrip(module, "state-arguments");
  EXPECT_THAT(module.text(), HasSubstr("S(5)} parameter(1)"));
  EXPECT_THAT(module.text(), HasSubstr("buffer_donor={ (0, {}), (1, {}) }"));
  module.stated.argument_memories = {"device"};
  EXPECT_THAT(Message(module.Run("state-arguments").status()),
              HasSubstr("memory kinds for 1 arguments and has 2"));
}

TEST(Annotate, KernelCosts) {
  Annotated module(
      "HloModule m ENTRY e { x = f32[64] parameter(0) "
      "ROOT k = f32[64] custom-call(x), custom_call_target=\"opaque\" }");
  module.stated.kernel_costs = {{.name = "k*", .cost = {.flops = Flops(5), .bytes = Bytes(512)}},
                                {.name = "other", .cost = {}}};
  ExpectRoundTrip(module, "state-kernel-costs");
  ASSERT_FALSE(module.Run("state-kernel-costs").value());
  EXPECT_THAT(module.warnings(),
              ElementsAre("--kernel-cost other has no effect: its custom calls are k"));
}

TEST(Annotate, TripCounts) {
  Annotated module(
      "HloModule m ENTRY e { x = f32[8,8] parameter(0) ROOT k = (f32[8,8], f32[8]) "
      "custom-call(x), custom_call_target=\"Eigh\" }");
  module.costs.trips = 6;
  ExpectRoundTrip(module, "state-trip-counts");
  EXPECT_THAT(module.text(), HasSubstr("tpusim.assumed_trips=\"6\""));
}

TEST(Annotate, RaggedSizes) {
  Annotated module(R"(HloModule m ENTRY e { x = f32[128,16] parameter(0) o = f32[32,16] parameter(1)
    s = s32[4] parameter(2)
    ROOT k = f32[32,16] ragged-all-to-all(x, o, s, s, s, s), replica_groups={{0,1,2,3}} })");
  module.stated.ragged = {*ParseRaggedOverride("k=64,16,0,0")};
  EXPECT_TRUE(module.Run("state-ragged-sizes").value());
  EXPECT_THAT(module.runs[0].records, ::testing::SizeIs(1));
  Annotated again(module.text());
  EXPECT_FALSE(again.Run("state-ragged-sizes").value());
  EXPECT_EQ(again.text(), module.text());
  EXPECT_THAT(module.text(), HasSubstr("tpusim.ragged_sizes=\"64,16,0,0\""));
}

// Passes without statements leave no run; if all are asked for they come first.
TEST(Annotate, TheyRunInFront) {
  const Pipeline pipeline = WithAnnotations(ParsePipeline("fusion,state-branches").value());
  EXPECT_THAT(NamesOf(pipeline),
              ElementsAre("state-arguments", "state-ragged-sizes", "state-kernel-costs",
                          "state-trip-counts", "fusion", "state-branches"));
  EXPECT_THAT(NamesOf(StepsOf(pipeline, Phase::kOptimize)), ElementsAre("fusion"));
  Annotated module(kBranches);
  EXPECT_FALSE(module.Run("state-branches,state-arguments,state-trip-counts").value());
  EXPECT_THAT(module.runs, IsEmpty());
  EXPECT_THAT(Message(ParsePipeline("-state-branches").status()),
              HasSubstr("state-branches writes what other options state: leave those out"));
}

// Two permutes of 1 ms, one after the other, beside products of 1 ms and 0.6 ms and a branch of
// 1 ms or of nothing. With the branch, it and the long product cover the permutes; without it, the
// short product has to cover one of them, or the step would take 2.6 ms instead of 2.
TEST(Annotate, TheOrderIsThatOfTheBranchThatRuns) {
  const auto step = [](const std::string& branch, const std::string& runs) {
    Annotated module(R"(HloModule m
short { ROOT a = f32[512,512] parameter(0) }
long {
  b = f32[512,512] parameter(0)
  ROOT d = f32[512,512] dot(b, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
ENTRY e {
  x = f32[512,512] parameter(0)
  which = s32[] parameter(1)
  y = f32[512,512] collective-permute(x), source_target_pairs={{0,1},{1,0}}
  z = f32[512,512] collective-permute(y), source_target_pairs={{0,1},{1,0}}
  c = f32[512,512] conditional(which, x, x), branch_computations={short, long}
  l = f32[512,512] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  k = f32[256,512] slice(x), slice={[0:256], [0:512]}
  s = f32[256,512] dot(k, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = (f32[512,512], f32[512,512], f32[512,512], f32[256,512]) tuple(z, c, l, s)
})");
    module.stated.branches = {{"c", branch}};
    module.costs.main = [](const hlo::Instruction& i) {
      if (i.opcode() != hlo::Opcode::kDot) return 0;
      return i.name() == "s" ? 600'000 : 1'000'000;
    };
    module.costs.transfer = [](const hlo::Instruction&) { return 1'000'000; };
    EXPECT_TRUE(module.Run("state-branches,async-collectives,schedule").ok());
    // What the order takes, with the branch that runs.
    int64_t now = 0, arrives = 0;
    const std::string text = module.text().substr(module.text().find("ENTRY"));
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      if (line.find(" collective-permute-start(") != std::string::npos) arrives = now + 1'000'000;
      if (line.find(" collective-permute-done(") != std::string::npos) now = std::max(now, arrives);
      if (line.find("%c = ") != std::string::npos && runs == "1") now += 1'000'000;
      if (line.find("%l = ") != std::string::npos) now += 1'000'000;
      if (line.find("%s = ") != std::string::npos) now += 600'000;
    }
    return now;
  };
  EXPECT_EQ(step("0", "0"), 2'000'000);
  EXPECT_EQ(step("1", "1"), 2'600'000);
  // That is another order.
  EXPECT_EQ(step("0", "1"), 3'000'000);
}

}  // namespace
}  // namespace tpusim::passes
