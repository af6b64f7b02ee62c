#include "tests/workloads/buffers/validate_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "configs/status_macros.h"
#include "tests/workloads/buffers/checked_plan.h"
#include "tests/workloads/passes/pass_test.h"

namespace tpusim::buffers {
namespace {

using ::testing::HasSubstr;

// Plans that are right until a test breaks them. Arrays of f32[512,512] are 1 MiB.
class ValidatePlanTest : public ::testing::Test {
 protected:
  void Plan(const std::string& text) {
    test_ = std::make_unique<passes::PassText>("HloModule m, is_scheduled=true" + text, "v5e-1x1");
    plan_ = CheckedPlan(test_->module(), target_);
  }
  std::string Problem() const { return Message(ValidatePlan(test_->module(), plan_, target_)); }
  int32_t BufferOf(const std::string& made_by) const {
    for (size_t b = 0; b < plan_.buffers.size(); ++b) {
      if (plan_.buffers[b].made_by->name() == made_by) return static_cast<int32_t>(b);
    }
    ADD_FAILURE() << made_by;
    return 0;
  }
  hlo::ComputationLives& Lives() { return plan_.computations.at(test_->module().entry()); }
  // Frees the buffer behind another instruction of the entry.
  void FreeBehind(const std::string& made_by, size_t position) {
    const int32_t b = BufferOf(made_by);
    for (std::vector<int32_t>& freed : Lives().free_after) std::erase(freed, b);
    Lives().free_after[position].push_back(b);
  }

  const configs::Config config_ = configs::LoadConfig("v5e-1x1", {}).value();
  const target::Target target_{config_};
  std::unique_ptr<passes::PassText> test_;
  MemoryPlan plan_;
};

// a and b live together, then b and c.
constexpr char kChain[] = R"(
ENTRY e {
  x = f32[512,512]{1,0} parameter(0)
  a = f32[512,512]{1,0} tanh(x)
  b = f32[512,512]{1,0} negate(a)
  c = f32[512,512]{1,0} tanh(b)
  ROOT d = f32[512,512]{1,0} add(b, c)
})";

TEST_F(ValidatePlanTest, WhatLivesTogetherMustNotOverlap) {
  Plan(kChain);
  plan_.offsets[BufferOf("b")] = plan_.offsets[BufferOf("a")] + Bytes(512 * kKiB);
  EXPECT_THAT(Problem(), HasSubstr("(b f32[512,512]) overlaps buffer"));
}

TEST_F(ValidatePlanTest, WhatIsReadMustStillBeThere) {
  Plan(kChain);
  FreeBehind("b", 3);  // d reads it
  EXPECT_THAT(Problem(),
              HasSubstr("d needs what was in buffer 2 (b f32[512,512]), which is freed"));
}

TEST_F(ValidatePlanTest, WhatIsNotReadMustGo) {
  Plan(kChain);
  for (std::vector<int32_t>& freed : Lives().free_after) std::erase(freed, BufferOf("b"));
  EXPECT_THAT(Problem(), HasSubstr("(b f32[512,512]) is never freed"));
}

TEST_F(ValidatePlanTest, PeaksMustBeWhatIsNeeded) {
  Plan(kChain);
  plan_.peaks[hlo::kHbmSpace] += Bytes(1);
  EXPECT_THAT(Problem(), HasSubstr("4194304 bytes of S(0) are live at most, not 4194305"));
  plan_.fragmentation += Bytes(1);
  EXPECT_THAT(Problem(), HasSubstr("arguments and heap take 4194304 bytes, not 4194305"));
}

TEST_F(ValidatePlanTest, BuffersMustBeLargeEnough) {
  Plan(kChain);
  plan_.buffers[BufferOf("a")].bytes -= Bytes(4);
  EXPECT_THAT(Problem(), HasSubstr("a, leaf 0: 1048572 bytes for 1048576"));
}

// A result in an argument's place, where the argument is read later; and where it is read by the
// instruction itself, in another order.
TEST_F(ValidatePlanTest, NothingMayBeOverwrittenThatIsNeeded) {
  for (const bool later : {true, false}) {
    Plan(std::string(R"(
ENTRY e {
  x = f32[512,512]{1,0} parameter(0)
  a = f32[512,512]{1,0} )") +
         (later ? "negate(x)" : "reverse(x), dimensions={0}") + R"(
  b = f32[512,512]{1,0} )" +
         (later ? "tanh(x)" : "tanh(a)") + R"(
  ROOT r = (f32[512,512]{1,0}, f32[512,512]{1,0}) tuple(a, b)
})");
    const int32_t a = BufferOf("a");
    plan_.buffers[a].inside = BufferOf("x");
    for (std::vector<int32_t>& made : Lives().alloc_before) std::erase(made, a);
    for (std::vector<int32_t>& freed : Lives().free_after) std::erase(freed, a);
    EXPECT_THAT(
        Problem(),
        HasSubstr(later ? "b needs what was in buffer 0 (x f32[512,512]), which is overwritten"
                        : "a overwrites its operand 0 while it reads it"));
  }
}

// An element that the body forwards must outlive the first iteration.
TEST_F(ValidatePlanTest, TheNextIterationNeedsWhatIsHandedOn) {
  Plan(R"(
body {
  t = (f32[512,512]{1,0}, f32[512,512]{1,0}) parameter(0)
  w = f32[512,512]{1,0} get-tuple-element(t), index=0
  v = f32[512,512]{1,0} get-tuple-element(t), index=1
  y = f32[512,512]{1,0} add(w, v)
  ROOT s = (f32[512,512]{1,0}, f32[512,512]{1,0}) tuple(w, y)
}
condition {
  q = (f32[512,512]{1,0}, f32[512,512]{1,0}) parameter(0)
  ROOT p = pred[] constant(true)
}
ENTRY e {
  x = f32[512,512]{1,0} parameter(0)
  a = f32[512,512]{1,0} tanh(x)
  b = f32[512,512]{1,0} negate(x)
  c = (f32[512,512]{1,0}, f32[512,512]{1,0}) tuple(a, b)
  l = (f32[512,512]{1,0}, f32[512,512]{1,0}) while(c), condition=condition, body=body
  ROOT g = f32[512,512]{1,0} get-tuple-element(l), index=1
})");
  const int32_t y = BufferOf("y");
  EXPECT_EQ(plan_.buffers[y].inside, BufferOf("b"));
  plan_.buffers[y].inside = BufferOf("a");
  EXPECT_THAT(Problem(), HasSubstr("which is overwritten"));
}

// The start of a transfer reads until its done.
TEST_F(ValidatePlanTest, TransfersReadUntilTheyAreOver) {
  Plan(R"(
ENTRY e {
  x = f32[512,512]{1,0} parameter(0)
  a = f32[512,512]{1,0} tanh(x)
  s = (f32[512,512]{1,0}, f32[512,512]{1,0}, u32[], u32[]) collective-permute-start(a), source_target_pairs={{0,0}}
  b = f32[512,512]{1,0} negate(x)
  d = f32[512,512]{1,0} collective-permute-done(s)
  c = f32[512,512]{1,0} add(b, d)
  ROOT r = f32[8,128]{1,0} slice(c), slice={[0:8], [0:128]}
})");
  FreeBehind("a", 2);
  EXPECT_THAT(Problem(),
              HasSubstr("d needs what was in buffer 1 (a f32[512,512]), which is freed"));
}

}  // namespace
}  // namespace tpusim::buffers
