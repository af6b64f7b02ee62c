#include "workloads/hlo/analysis/donation.h"

#include <gtest/gtest.h>

#include <tuple>

#include "tests/workloads/buffers/checked_plan.h"
#include "tests/workloads/passes/small_module.h"

namespace tpusim::buffers {
namespace {

using hlo::Donation;
using hlo::Donations;
using hlo::Instruction;
using hlo::MakeShape;
using hlo::Opcode;
using hlo::PrimitiveType;
using passes::SmallModule;

using Row = std::tuple<int64_t, int64_t, int64_t>;  // result, parameter, its leaf

std::vector<Row> Rows(const hlo::Module& module) {
  std::vector<Row> rows;
  for (const Donation& d : Donations(module)) {
    rows.emplace_back(d.result_leaf, d.parameter, d.parameter_leaf);
  }
  return rows;
}

void Donate(SmallModule& m, int64_t parameter, const std::vector<int64_t>& index = {}) {
  auto* entry = m.module().mutable_fields().mutable_buffer_donor()->add_entries();
  entry->set_parameter_number(parameter);
  for (const int64_t i : index) entry->add_parameter_shape_index(i);
}

void Alias(SmallModule& m, int64_t result, int64_t parameter) {
  auto* entry = m.module().mutable_fields().mutable_input_output_alias()->add_entries();
  entry->add_output_shape_index(result);
  entry->set_parameter_number(parameter);
}

TEST(Donations, GoToResultsOfTheirShapeInOrder) {
  SmallModule m;
  Instruction* a = m.Parameter({8});
  Instruction* b = m.Parameter({16});
  Instruction* c = m.Parameter({8});
  m.Return({m.Add(Opcode::kTanh, {16}, {b}), m.Add(Opcode::kTanh, {8}, {a}),
            m.Add(Opcode::kTanh, {8}, {c}), m.Add(Opcode::kAbs, {8}, {c})});
  for (const int64_t parameter : {2, 0, 1, 2}) Donate(m, parameter);
  // The file names 2 before 0; 2 a second time gives nothing; result 3 finds no donor.
  EXPECT_EQ(Rows(m.module()), (std::vector<Row>{{0, 1, 0}, {1, 2, 0}, {2, 0, 0}}));
}

TEST(Donations, AliasesComeFirst) {
  SmallModule m;
  Instruction* a = m.Parameter({8});
  Instruction* b = m.Parameter({8});
  m.Return({m.Add(Opcode::kTanh, {8}, {a}), m.Add(Opcode::kTanh, {8}, {b})});
  Donate(m, 0);
  Donate(m, 1);
  Alias(m, 1, 0);
  Alias(m, 0, 0);  // taken already
  Alias(m, 5, 1);  // no such result
  Alias(m, 0, 7);  // no such parameter
  EXPECT_EQ(Rows(m.module()), (std::vector<Row>{{0, 1, 0}, {1, 0, 0}}));
}

TEST(Donations, LeavesOfTuplesAreCountedThrough) {
  SmallModule m;
  const hlo::Shape leaf = MakeShape(PrimitiveType::kF32, {8});
  const hlo::Shape nested = hlo::MakeTupleShape({leaf, hlo::MakeTupleShape({leaf, leaf})});
  m.entry().AddParameter(0, nested, "state");
  Instruction* x = m.entry().AddParameter(1, leaf, "x");
  m.Return({m.Add(Opcode::kTanh, {8}, {x})});
  Donate(m, 0, {1});     // a tuple, no leaf
  Donate(m, 0, {1, 5});  // no such leaf
  Donate(m, 0, {1, 1});
  EXPECT_EQ(Rows(m.module()), (std::vector<Row>{{0, 0, 2}}));
}

// The arguments are as many as the optimizer state of a thousand layers has, donated in the reverse
// order of the results that take them, no two of one shape. Examining every donor for every result,
// or every instruction for every buffer, would take hours.
TEST(Donations, ManyOfThemTakeNoLongerThanTheyAre) {
  constexpr int64_t kArguments = 30'000;
  SmallModule m;
  std::vector<Instruction*> results;
  for (int64_t n = 0; n < kArguments; ++n) {
    results.push_back(m.Add(Opcode::kTanh, {n + 1}, {m.Parameter({n + 1})}));
  }
  m.Return(results);
  for (int64_t n = kArguments; n-- > 0;) Donate(m, n);
  const std::vector<Donation> donations = Donations(m.module());
  ASSERT_EQ(donations.size(), static_cast<size_t>(kArguments));
  for (int64_t n = 0; n < kArguments; ++n) {
    EXPECT_EQ(donations[n].result_leaf, n);
    EXPECT_EQ(donations[n].parameter, n);
  }
  m.entry().set_schedule(m.entry().PostOrder());
  const MemoryPlan plan = CheckedPlan(m.module(), m.target());
  // Every result is written over its argument: nothing lives but arguments.
  Bytes arguments(0);
  for (const int32_t b : plan.arguments) arguments += plan.buffers[b].bytes;
  EXPECT_EQ(plan.PeakOf(hlo::kHbmSpace), arguments);
}

}  // namespace
}  // namespace tpusim::buffers
