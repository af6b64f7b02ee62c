#include "workloads/passes/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/workloads/passes/small_module.h"
#include "workloads/passes/async_collectives.h"

namespace tpusim::passes {
namespace {

LatencyEstimator TenPerTanhHundredPerPermute() {
  LatencyEstimator e;
  e.busy = [](const Instruction& i) -> absl::StatusOr<Picoseconds> {
    return Picoseconds(i.opcode() == Opcode::kTanh || i.opcode() == Opcode::kAdd ? 10 : 0);
  };
  e.in_flight = [](const Instruction&) -> absl::StatusOr<Picoseconds> { return Picoseconds(100); };
  e.trips = [](const Instruction&) -> absl::StatusOr<int64_t> { return 1; };
  return e;
}

TEST(Schedule, ComputeRunsBetweenStartAndDone) {
  SmallModule m;
  Instruction* x = m.Parameter({256, 512});
  Instruction* t = m.Add(Opcode::kTanh, {256, 512}, {x});
  Instruction* permute = m.Add(Opcode::kCollectivePermute, {256, 512}, {x});
  m.Return({m.Add(Opcode::kAdd, {256, 512}, {t, permute})});
  ASSERT_TRUE(MakeCollectivesAsync(m.module(), m.target()).ok());
  ASSERT_TRUE(Schedule(m.module(), m.target(), TenPerTanhHundredPerPermute()).ok());
  const auto& order = m.entry().schedule();
  const auto at = [&](Opcode op) {
    return std::find_if(order.begin(), order.end(),
                        [&](const Instruction* i) { return i->opcode() == op; }) -
           order.begin();
  };
  EXPECT_LT(at(Opcode::kCollectivePermuteStart), at(Opcode::kTanh));
  EXPECT_LT(at(Opcode::kTanh), at(Opcode::kCollectivePermuteDone));
  EXPECT_LT(at(Opcode::kCollectivePermuteDone), at(Opcode::kAdd));
  EXPECT_EQ(order.size(), m.entry().size());
}

TEST(Schedule, NoMoreThanFivePermutesInFlight) {
  SmallModule m;
  Instruction* x = m.Parameter({256, 512});
  std::vector<Instruction*> results;
  for (int n = 0; n < 7; ++n) {
    results.push_back(m.Add(Opcode::kCollectivePermute, {256, 512}, {x}));
  }
  m.Return(results);
  ASSERT_TRUE(MakeCollectivesAsync(m.module(), m.target()).ok());
  ASSERT_TRUE(Schedule(m.module(), m.target(), TenPerTanhHundredPerPermute()).ok());
  int in_flight = 0, most = 0;
  for (const Instruction* i : m.entry().schedule()) {
    if (i->opcode() == Opcode::kCollectivePermuteStart) ++in_flight;
    if (i->opcode() == Opcode::kCollectivePermuteDone) --in_flight;
    most = std::max(most, in_flight);
  }
  EXPECT_EQ(most, 5);
  EXPECT_EQ(in_flight, 0);
}

}  // namespace
}  // namespace tpusim::passes
