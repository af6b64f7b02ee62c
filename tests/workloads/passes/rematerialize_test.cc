// Savings of rematerialisation, and what it records; rematerialize/*.hlo has the programs that it
// makes.
#include "workloads/passes/rematerialize/rematerialize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "configs/config.h"
#include "tests/workloads/buffers/checked_plan.h"
#include "tests/workloads/passes/fake_costs.h"
#include "workloads/buffers/live_bytes.h"
#include "workloads/hlo/analysis/verify.h"
#include "workloads/hlo/io/text_parser.h"

namespace tpusim::passes {
namespace {

using ::testing::HasSubstr;

// Arrays of f32[512,512] are 1 MiB.
class RematerializeTest : public ::testing::Test {
 protected:
  RematerializeTest() : config_(configs::LoadConfig("v5e-1x1", {}).value()) {
    config_.chip.hbm.reserved_bytes = Bytes(0);
    // Products are dear.
    costs_.main = [](const hlo::Instruction& i) {
      return i.opcode() == hlo::Opcode::kDot ? 1'000'000 : 1'000;
    };
  }

  // Runs the pass with so many MiB of HBM, all of which may be live.
  bool Run(std::string_view text, int64_t mebibytes) {
    config_.chip.hbm.bytes = Bytes(mebibytes * kMiB);
    module_ = hlo::ParseHloText(std::string(text)).value().module;
    const target::Target target(config_);
    PassContext context(target, costs_);
    said_.clear();
    context.records = Records(&said_);
    const bool changed = Rematerialize(*module_, context, 100).value();
    EXPECT_TRUE(hlo::Verify(*module_).ok()) << hlo::Verify(*module_);
    return changed;
  }
  Bytes Peak() const {
    return buffers::CheckedPlan(*module_, target::Target(config_)).PeakOf(hlo::kHbmSpace);
  }

  configs::Config config_;
  FakeCosts costs_;
  std::unique_ptr<hlo::Module> module_;
  std::vector<Record> said_;
};

// x and d live throughout, a (cheap) and b (dear) from the beginning to the end: while e is
// made x, a, b, d, c and e are live, 6 MiB.
constexpr std::string_view kKept = R"(HloModule m, is_scheduled=true, input_output_alias={ {}: (0, {}, may-alias) }
ENTRY f {
  x = f32[512,512]{1,0} parameter(0)
  a = f32[512,512]{1,0} tanh(x), metadata={op_name="jit(f)/tanh"}
  b = f32[512,512]{1,0} dot(x, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  d = f32[512,512]{1,0} dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  c = f32[512,512]{1,0} dot(d, d), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  e = f32[512,512]{1,0} dot(c, d), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  g = f32[512,512]{1,0} dot(e, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  h = f32[512,512]{1,0} dot(g, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT i = f32[512,512]{1,0} dot(h, d), lhs_contracting_dims={1}, rhs_contracting_dims={0}
})";

// Returns the same in a branch, of which it is said whether it is taken. That its argument is read
// and its
std::string InABranch(const std::string& attributes) {
  return R"(HloModule m, is_scheduled=true
f {
  w = f32[512,512]{1,0} parameter(0)
  x = f32[512,512]{1,0} negate(w)
  a = f32[512,512]{1,0} tanh(x)
  b = f32[512,512]{1,0} dot(x, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  d = f32[512,512]{1,0} dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  c = f32[512,512]{1,0} dot(d, d), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  e = f32[512,512]{1,0} dot(c, d), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  g = f32[512,512]{1,0} dot(e, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  h = f32[512,512]{1,0} dot(g, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  i = f32[512,512]{1,0} dot(h, d), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT j = f32[512,512]{1,0} add(i, x)
}
other { y = f32[512,512]{1,0} parameter(0) ROOT z = f32[512,512]{1,0} negate(y) }
ENTRY main {
  p = f32[512,512]{1,0} parameter(0)
  which = s32[] parameter(1)
  ROOT q = f32[512,512]{1,0} conditional(which, p, p), branch_computations={f, other})" +
         attributes + "\n}";
}

TEST_F(RematerializeTest, ABranchThatIsNotTakenCostsNothing) {
  const auto cost = [&](const std::string& attributes) {
    EXPECT_TRUE(Run(InABranch(attributes), 7));
    EXPECT_EQ(said_.at(0).reason->id, "rematerialize.recomputed");
    EXPECT_EQ(said_.at(0).subject, "a");
    return std::get<double>(said_.at(0).Find("cost_us")->value);
  };
  EXPECT_EQ(cost(""), 0.001);
  EXPECT_EQ(cost(R"(, frontend_attributes={tpusim.branch="0"})"), 0.001);
  EXPECT_EQ(cost(R"(, frontend_attributes={tpusim.branch="1"})"), 0);
}

TEST_F(RematerializeTest, AValueThatIsComputedAgainIsNotLiveBetween) {
  EXPECT_FALSE(Run(kKept, 6));
  EXPECT_EQ(Peak(), Bytes(6 * kMiB));
  ASSERT_EQ(said_.size(), 1u);
  EXPECT_EQ(ToString(said_[0]), "m fits: 6291456 bytes are live at most, and 6291456 may be");
  EXPECT_TRUE(Run(kKept, 5));
  EXPECT_EQ(Peak(), Bytes(5 * kMiB));
  ASSERT_EQ(said_.size(), 1u);
  EXPECT_THAT(ToString(said_[0]),
              HasSubstr("a: computed again as a.remat in front of h, saves 1048576"));
}

TEST_F(RematerializeTest, InALoopACopyCostsItsTimeInEveryIteration) {
  costs_.trips = 4;
  EXPECT_TRUE(Run(R"(HloModule m, is_scheduled=true
body {
  s = (f32[512,512]{1,0}, f32[512,512]{1,0}) parameter(0)
  v = f32[512,512]{1,0} get-tuple-element(s), index=0
  w = f32[512,512]{1,0} get-tuple-element(s), index=1
  a = f32[512,512]{1,0} tanh(w)
  b = f32[512,512]{1,0} dot(v, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  c = f32[512,512]{1,0} dot(b, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  d = f32[512,512]{1,0} dot(c, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  e = f32[512,512]{1,0} dot(d, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT t = (f32[512,512]{1,0}, f32[512,512]{1,0}) tuple(e, w)
}
more {
  s = (f32[512,512]{1,0}, f32[512,512]{1,0}) parameter(0)
  ROOT y = pred[] constant(true)
}
ENTRY f {
  x = f32[512,512]{1,0} parameter(0)
  y = f32[512,512]{1,0} parameter(1)
  z = f32[512,512]{1,0} tanh(x)
  i = (f32[512,512]{1,0}, f32[512,512]{1,0}) tuple(z, y)
  l = (f32[512,512]{1,0}, f32[512,512]{1,0}) while(i), condition=more, body=body
  ROOT r = f32[512,512]{1,0} get-tuple-element(l), index=0
})",
                  6));
  // x, y, z, b, c, d
  EXPECT_EQ(Peak(), Bytes(6 * kMiB));
  ASSERT_EQ(said_.size(), 1u);
  EXPECT_THAT(ToString(said_[0]), HasSubstr("a: computed again as a.remat in front of e"));
  EXPECT_THAT(ToString(said_[0]), HasSubstr("costs 0.004 us"));  // 1 ns, four times
}

TEST(LiveBytes, TheMostOfARange) {
  buffers::LiveBytes live(10);
  live.Add(0, 9, Bytes(5));
  live.Add(3, 6, Bytes(10));
  live.Add(5, 8, Bytes(7));
  EXPECT_EQ(live.Most(), Bytes(22));
  EXPECT_EQ(live.Most(0, 2), Bytes(5));
  EXPECT_EQ(live.Most(2, 4), Bytes(15));
  EXPECT_EQ(live.Most(7, 9), Bytes(12));
  live.Add(4, 6, Bytes(-10));
  EXPECT_EQ(live.Most(), Bytes(15));
  EXPECT_EQ(live.Most(5, 9), Bytes(12));
  EXPECT_EQ(live.Most(7, 6), Bytes(0));
}

}  // namespace
}  // namespace tpusim::passes
