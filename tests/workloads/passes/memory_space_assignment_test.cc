// Memory plans of what memory-space assignment places; more of what it makes of programs is in
// spaces/*.hlo.
#include "workloads/passes/spaces/memory_space_assignment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs/memory.h"
#include "configs/status_macros.h"
#include "tests/workloads/buffers/checked_plan.h"
#include "tests/workloads/passes/small_module.h"
#include "workloads/buffers/fits.h"
#include "workloads/cost/chip_cost_model.h"

namespace tpusim::passes {
namespace {

constexpr int64_t kCmemSpace = configs::MemoryOf(configs::MemorySpace::kCmem).number;

using ::testing::HasSubstr;

int64_t SpaceOf(const Instruction* i) { return i->shape().layout.memory_space; }

absl::StatusOr<bool> Assign(SmallModule& m) {
  cost::ChipCostModel costs(m.target(), {0}, {},
                            [](const Instruction&) -> absl::StatusOr<int64_t> { return 4; });
  return AssignMemory(m.module(), {m.target(), costs});
}

void Place(SmallModule& m) {
  m.entry().set_schedule(m.entry().PostOrder());
  const absl::StatusOr<bool> placed = Assign(m);
  ASSERT_TRUE(placed.ok()) << placed.status();
}

// The operand that is a copy, and what it copies; null if it is none.
const Instruction* CopiedBy(const Instruction* done) {
  return done->opcode() == Opcode::kCopyDone ? done->operand(0)->operand(0) : nullptr;
}

TEST(Cmem, HoldsWhatIsMadeAndUsedUp) {
  // x is an argument, y a result; between them t, and t again as a row of 131072.
  SmallModule m("v4-2x2x1");
  Instruction* x = m.Parameter({256, 512});
  Instruction* t = m.Add(Opcode::kTanh, {256, 512}, {x});
  Instruction* row = m.Add(Opcode::kBitcast, {256 * 512}, {t});
  Instruction* u = m.Add(Opcode::kNegate, {256 * 512}, {row});
  Instruction* y = m.Add(Opcode::kAbs, {256 * 512}, {u});
  m.Return({y});
  Place(m);
  EXPECT_EQ(SpaceOf(x), hlo::kHbmSpace);
  EXPECT_EQ(SpaceOf(t), kCmemSpace);
  EXPECT_EQ(SpaceOf(row), kCmemSpace);  // another name of it
  EXPECT_EQ(SpaceOf(u), kCmemSpace);
  EXPECT_EQ(SpaceOf(y), hlo::kHbmSpace);
  // 512 KiB each: t and u live together while u is made; x and y fill HBM.
  const buffers::MemoryPlan plan = buffers::CheckedPlan(m.module(), m.target());
  EXPECT_EQ(plan.PeakOf(kCmemSpace), Bytes(1024 * kKiB));
  EXPECT_EQ(plan.PeakOf(hlo::kHbmSpace), Bytes(1024 * kKiB));
  EXPECT_EQ(plan.live_at_peak.size(), 2u);
}

// Both are 80 MiB, which fit into VMEM once: the one that saves its maker more time is there.
TEST(Vmem, HoldsWhatIsStatedToSaveMore) {
  for (const auto& [by_t, by_u] : {std::pair(30, 20), {20, 30}}) {
    SmallModule m("v5e-2x2");
    Instruction* x = m.Parameter({20480, 1024});
    Instruction* t = m.Add(Opcode::kTanh, {20480, 1024}, {x});
    Instruction* u = m.Add(Opcode::kNegate, {20480, 1024}, {x});
    m.Return({m.Add(Opcode::kAdd, {20480, 1024}, {t, u})});
    m.entry().set_schedule(m.entry().PostOrder());
    // Microseconds; each of the two has one operand and one result, which is the array.
    m.costs().placed = [&](const Instruction& i, const std::vector<bool>& there) {
      const bool result_there = there.back();
      const int saved = i.opcode() == Opcode::kTanh     ? by_t
                        : i.opcode() == Opcode::kNegate ? by_u
                                                        : 0;
      kernels::KernelCost cost;
      cost.time = Picoseconds(1'000'000) * (100 - (result_there ? saved : 0));
      return cost;
    };
    m.costs().main = [](const Instruction&) { return 100'000'000; };
    const absl::StatusOr<bool> placed = AssignMemory(m.module(), m.context());
    ASSERT_TRUE(placed.ok()) << placed.status();
    EXPECT_EQ(SpaceOf(t), by_t > by_u ? hlo::kVmemSpace : hlo::kHbmSpace);
    EXPECT_EQ(SpaceOf(u), by_t > by_u ? hlo::kHbmSpace : hlo::kVmemSpace);
  }
}

TEST(Cmem, WhatIsCopiedToHbmMakesRoomWhenTheCopyIsOver) {
  // Six arrays of 40 MiB, each read once and returned: 240 MiB if all stayed until the end,
  // where the copies are needed. Each is copied beside the product behind its reader (1 ms
  // at 137 TFLOP/s, the copy takes 35 us), and gone when the next one is made.
  SmallModule m("v4-2x2x1");
  Instruction* x = m.Parameter({4096, 4096});
  Instruction* y = m.Parameter({4096, 4096});
  Instruction* few = m.Parameter({8, 10240});
  std::vector<Instruction*> order{x, y, few}, made, results;
  for (int n = 0; n < 6; ++n) {
    Instruction* z = m.Parameter({10240, 1024});
    Instruction* t = m.Add(Opcode::kTanh, {10240, 1024}, {z});
    Instruction* reader = m.Dot({8, 1024}, few, t);
    Instruction* busy = m.Dot({4096, 4096}, x, y);
    for (Instruction* i : {z, t, reader, busy}) order.push_back(i);
    made.push_back(t);
    for (Instruction* i : {t, reader, busy}) results.push_back(i);
  }
  m.Return(results);
  order.push_back(m.entry().root());
  m.entry().set_schedule(order);
  ASSERT_TRUE(Assign(m).ok());
  const buffers::MemoryPlan plan = buffers::CheckedPlan(m.module(), m.target());
  EXPECT_LE(plan.PeakOf(kCmemSpace), Bytes(128 * kMiB));
  for (size_t n = 0; n < made.size(); ++n) {
    EXPECT_EQ(SpaceOf(made[n]), kCmemSpace);
    EXPECT_EQ(CopiedBy(m.entry().root()->operand(3 * n)), made[n]);
  }
}

TEST(Cmem, WhatIsPlacedFitsWhicheverValuesCompete) {
  // Arrays of 16 to 64 MiB, read at once, again a few products later, and returned: copies
  // out end where others in begin.
  for (int64_t variant = 1; variant <= 24; ++variant) {
    SmallModule m("v4-2x2x1");
    Instruction* x = m.Parameter({2048, 2048});
    std::vector<Instruction*> order{x}, made, results;
    for (int64_t n = 0; n < 12; ++n) {
      const int64_t rows = 4096 * (1 + n * (variant + 2) * 7 % 4);
      Instruction* z = m.Parameter({rows, 1024});
      Instruction* t = m.Add(Opcode::kTanh, {rows, 1024}, {z});
      Instruction* few = m.Parameter({8, rows});
      Instruction* reader = m.Dot({8, 1024}, few, t);
      for (Instruction* i : {z, t, few, reader}) order.push_back(i);
      for (Instruction* i : {t, reader}) results.push_back(i);
      for (int64_t b = 0; b < 1 + n * variant % 3; ++b) {
        results.push_back(m.Dot({2048, 2048}, x, x));
        order.push_back(results.back());
      }
      made.push_back(t);
      if (n < 3) continue;
      Instruction* old = made[static_cast<size_t>(n - 1 - n * variant % 3)];
      Instruction* again = m.Dot({8, 1024}, m.Parameter({8, old->shape().dims[0]}), old);
      order.push_back(again->operand(0));
      order.push_back(again);
      results.push_back(again);
    }
    m.Return(results);
    order.push_back(m.entry().root());
    m.entry().set_schedule(order);
    ASSERT_TRUE(Assign(m).ok());
    const buffers::MemoryPlan plan = buffers::CheckedPlan(m.module(), m.target());
    const absl::Status fits = buffers::CheckFits(m.module(), plan, m.target());
    EXPECT_TRUE(fits.ok()) << variant << ": " << fits;
  }
}

TEST(Cmem, StatedPlacesThatDoNotFitAreErrors) {
  SmallModule m("v4-2x2x1");
  Instruction* x = m.Parameter({65536, 1024});  // 256 MiB
  hlo::Shape shape = x->shape();
  shape.layout.memory_space = kCmemSpace;
  x->set_shape(shape);
  m.Return({m.Add(Opcode::kAbs, {65536, 1024}, {x})});
  Place(m);
  const buffers::MemoryPlan plan = buffers::CheckedPlan(m.module(), m.target());
  EXPECT_THAT(Message(buffers::CheckFits(m.module(), plan, m.target())),
              HasSubstr("does not fit: 256.0 MiB at its peak, v4 has 128.0 MiB"));
}

}  // namespace
}  // namespace tpusim::passes
