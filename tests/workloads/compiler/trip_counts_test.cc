#include "workloads/compiler/trip_counts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "tests/workloads/hlo/hlo_test_util.h"
#include "workloads/compiler/stages.h"
#include "workloads/hlo/ir/attributes.h"

namespace tpusim::compiler {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;
using ::testing::HasSubstr;

// Loops over a counter from zero, up to a constant or up to a value that is data.
class TripCountsTest : public ::testing::Test {
 protected:
  Instruction* Loop(std::optional<int64_t> limit) {
    const hlo::Shape carry = hlo::MakeTupleShape({hlo::S32({}), hlo::S32({})});
    const auto constant = [](Computation* c, int64_t value) {
      return hlo::AddIntConstant(c, hlo::PrimitiveType::kS32, value);
    };
    const auto element = [](Computation* c, Instruction* of, int64_t index) {
      Instruction* i = hlo::TestModule::Add(c, Opcode::kGetTupleElement, hlo::S32({}), {of});
      i->mutable_attrs().set_tuple_index(index);
      return i;
    };
    Computation* body = m_.module().AddComputation("body");
    Instruction* p = hlo::TestModule::Param(body, carry);
    Instruction* n = element(body, p, 1);
    Instruction* next = hlo::TestModule::Add(body, Opcode::kAdd, hlo::S32({}),
                                             {element(body, p, 0), constant(body, 1)});
    hlo::TestModule::Add(body, Opcode::kTuple, carry, {next, n});
    Computation* condition = m_.module().AddComputation("condition");
    Instruction* q = hlo::TestModule::Param(condition, carry);
    Instruction* compare =
        hlo::TestModule::Add(condition, Opcode::kCompare, hlo::Pred(),
                             {element(condition, q, 0), element(condition, q, 1)});
    compare->mutable_attrs().set_comparison_direction("LT");
    Instruction* end = limit ? constant(m_.entry(), *limit) : m_.Param(hlo::S32({}));
    Instruction* start = m_.Add(Opcode::kTuple, carry, {constant(m_.entry(), 0), end});
    Instruction* loop = m_.Add(Opcode::kWhile, carry, {start});
    loop->set_called({body, condition});
    return loop;
  }

  hlo::TestModule m_;
  tpusim::Workload workload_;
};

TEST_F(TripCountsTest, GlobsAreForLoopsOnData) {
  const Instruction* known = Loop(8);
  const Instruction* data = Loop(std::nullopt);
  TripCounts counts(workload_, {{"*", 3}});
  EXPECT_EQ(counts(*known).value(), 8);
  EXPECT_EQ(counts(*data).value(), 3);
  EXPECT_EQ(counts.assumptions().size(), 1U);
  EXPECT_THAT(TextsOf(counts.Unused(), Action::kWarned), ::testing::IsEmpty());
}

TEST_F(TripCountsTest, NamesOverride) {
  const Instruction* known = Loop(8);
  auto* stated = workload_.add_trip_counts();
  stated->set_loop(known->name());
  stated->set_count(5);
  TripCounts of_workload(workload_, {{"*", 3}});
  EXPECT_EQ(of_workload(*known).value(), 5);
  TripCounts of_user(workload_, {{known->name(), 4}});
  EXPECT_EQ(of_user(*known).value(), 4);
}

TEST_F(TripCountsTest, WithoutEffect) {
  const Instruction* known = Loop(8);
  TripCounts counts(workload_, {{"whi*", 3}, {"loop", 3}});
  EXPECT_EQ(counts(*known).value(), 8);
  EXPECT_THAT(TextsOf(counts.Unused(), Action::kWarned),
              ::testing::ElementsAre(HasSubstr("the program says how often " + known->name()),
                                     HasSubstr("its loops are " + known->name())));
}

TEST_F(TripCountsTest, SomeOfManyLoopsAreNamed) {
  TripCounts counts(workload_, {{"other", 3}, {"*", 4}});
  for (int n = 0; n < 9; ++n) EXPECT_TRUE(counts(*Loop(std::nullopt)).ok());
  EXPECT_THAT(TextsOf(counts.Unused(), Action::kWarned),
              ::testing::ElementsAre(HasSubstr(" and 3 more")));
}

TEST_F(TripCountsTest, LoopsOfKernels) {
  tpusim::KernelLoop loop;
  loop.set_name("paged/loop.0");
  TripCounts none(workload_, {});
  EXPECT_EQ(none.OfKernelLoop(loop), std::nullopt);
  TripCounts counts(workload_, {{"paged*", 6}});
  EXPECT_EQ(counts.OfKernelLoop(loop), 6);
  EXPECT_THAT(TextsOf(counts.Unused(), Action::kWarned), ::testing::IsEmpty());
}

// Without a statement such a loop runs as often as it can; a glob goes no further, a name does.
TEST_F(TripCountsTest, LoopsOfKernelsThatAreBounded) {
  tpusim::KernelLoop loop;
  loop.set_name("paged/loop.0");
  loop.set_at_most(4);
  TripCounts none(workload_, {});
  EXPECT_EQ(none.OfKernelLoop(loop), 4);
  EXPECT_THAT(TextsOf(none.assumptions(), Action::kAssumed),
              ::testing::ElementsAre(HasSubstr("runs 4 times, the most that it can")));
  TripCounts few(workload_, {{"*", 3}});
  EXPECT_EQ(few.OfKernelLoop(loop), 3);
  TripCounts many(workload_, {{"*", 9}});
  EXPECT_EQ(many.OfKernelLoop(loop), 4);
  EXPECT_THAT(TextsOf(many.Unused(), Action::kWarned), ::testing::IsEmpty());
  TripCounts by_name(workload_, {{"paged/loop.0", 9}});
  EXPECT_EQ(by_name.OfKernelLoop(loop), 9);
}

// Assumed counts apply where nothing is stated; a glob goes no further than a loop can.
TEST_F(TripCountsTest, WhatIsAssumed) {
  Instruction* loop = Loop(std::nullopt);
  hlo::SetFrontendAttribute(loop, "tpusim.assumed_trips", "4");
  hlo::SetFrontendAttribute(loop, "tpusim.most_trips", "6");
  TripCounts none(workload_, {});
  EXPECT_EQ(none(*loop).value(), 4);
  EXPECT_THAT(
      TextsOf(none.assumptions(), Action::kAssumed),
      ::testing::ElementsAre(::testing::AllOf(HasSubstr("runs 4 times, which is assumed"),
                                              HasSubstr("(--trip-count " + loop->name() + "=N)"))));
  EXPECT_TRUE(CheckNothingOpen(m_.module(), none).ok());
  TripCounts few(workload_, {{"*", 2}});
  EXPECT_EQ(few(*loop).value(), 2);
  EXPECT_THAT(TextsOf(few.assumptions(), Action::kAssumed),
              ::testing::ElementsAre(HasSubstr("runs 2 times, as stated")));
  TripCounts many(workload_, {{"*", 9}});
  EXPECT_EQ(many(*loop).value(), 6);
  EXPECT_THAT(TextsOf(many.assumptions(), Action::kAssumed),
              ::testing::ElementsAre(HasSubstr("the most that it can")));
  EXPECT_THAT(TextsOf(many.Unused(), Action::kWarned), ::testing::IsEmpty());
  TripCounts by_name(workload_, {{loop->name(), 9}});
  EXPECT_EQ(by_name(*loop).value(), 9);
}

TEST_F(TripCountsTest, WhatIsOpenIsNamedAtOnce) {
  const Instruction* first = Loop(std::nullopt);
  TripCounts none(workload_, {});
  EXPECT_THAT(Message(CheckNothingOpen(m_.module(), none)),
              HasSubstr("state it with --trip-count " + first->name() + "=N"));
  const Instruction* second = Loop(std::nullopt);
  EXPECT_THAT(
      Message(CheckNothingOpen(m_.module(), none)),
      HasSubstr("--trip-count " + first->name() + "=N --trip-count " + second->name() + "=N"));
  TripCounts all(workload_, {{"*", 1}});
  EXPECT_TRUE(CheckNothingOpen(m_.module(), all).ok());
}

}  // namespace
}  // namespace tpusim::compiler
