#include "workloads/passes/memory/cmem.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs/status_macros.h"
#include "tests/workloads/passes/small_module.h"
#include "workloads/passes/memory/memory_plan.h"

namespace tpusim::passes {
namespace {

using ::testing::HasSubstr;

int64_t SpaceOf(const Instruction* i) { return i->shape().layout.memory_space; }

void Place(SmallModule& m) {
  m.entry().set_schedule(m.entry().PostOrder());
  const absl::StatusOr<bool> placed = PlaceInCmem(m.module(), m.target());
  ASSERT_TRUE(placed.ok()) << placed.status();
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
  EXPECT_EQ(SpaceOf(t), hlo::kCmemSpace);
  EXPECT_EQ(SpaceOf(row), hlo::kCmemSpace);  // another name of it
  EXPECT_EQ(SpaceOf(u), hlo::kCmemSpace);
  EXPECT_EQ(SpaceOf(y), hlo::kHbmSpace);
  EXPECT_TRUE(MayUseCmem(m.module()));
  // 512 KiB each: t and u live together while u is made; x and y fill HBM.
  const auto plan = PlanMemory(m.module(), m.target());
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->PeakOf(hlo::kCmemSpace), Bytes(1024 * kKiB));
  EXPECT_EQ(plan->PeakOf(hlo::kHbmSpace), Bytes(1024 * kKiB));
  EXPECT_EQ(plan->live_at_peak.size(), 2u);
}

TEST(Cmem, LeavesOtherReadersTheirHbm) {
  // A custom call and a collective read t and u; w is written into place.
  SmallModule m("v4-2x2x1");
  Instruction* x = m.Parameter({256, 512});
  Instruction* index = m.Parameter({}, PrimitiveType::kS32);
  Instruction* t = m.Add(Opcode::kTanh, {256, 512}, {x});
  Instruction* u = m.Add(Opcode::kNegate, {256, 512}, {x});
  Instruction* w = m.Add(Opcode::kAbs, {256, 512}, {x});
  Instruction* part = m.Add(Opcode::kSlice, {8, 512}, {x});
  m.Return({m.Add(Opcode::kCustomCall, {256, 512}, {t}), m.Add(Opcode::kAllReduce, {256, 512}, {u}),
            m.Add(Opcode::kDynamicUpdateSlice, {256, 512}, {w, part, index, index})});
  Place(m);
  for (const Instruction* i : {t, u, w, part}) EXPECT_EQ(SpaceOf(i), hlo::kHbmSpace) << i->name();
  EXPECT_FALSE(MayUseCmem(m.module()));
}

TEST(Cmem, ChipsWithoutItKeepHbm) {
  SmallModule m("v5e-2x2");
  Instruction* x = m.Parameter({256, 512});
  Instruction* t = m.Add(Opcode::kTanh, {256, 512}, {x});
  m.Return({m.Add(Opcode::kAbs, {256, 512}, {t})});
  Place(m);
  EXPECT_EQ(SpaceOf(t), hlo::kHbmSpace);
}

TEST(Cmem, WhatLivesTogetherHasToFit) {
  // CMEM has 128 MiB. a is 64, b 96 and c 32 MiB; all three live when d is made. One
  // read each: b gains most, sqrt(96), then a, sqrt(64), which does not fit beside it,
  // then c, which does.
  SmallModule m("v4-2x2x1");
  Instruction* x = m.Parameter({16384, 1024});
  Instruction* y = m.Parameter({24576, 1024});
  Instruction* z = m.Parameter({8192, 1024});
  Instruction* a = m.Add(Opcode::kTanh, {16384, 1024}, {x});
  Instruction* b = m.Add(Opcode::kTanh, {24576, 1024}, {y});
  Instruction* c = m.Add(Opcode::kTanh, {8192, 1024}, {z});
  Instruction* d = m.Add(Opcode::kConcatenate, {49152, 1024}, {a, b, c});
  m.Return({d});
  Place(m);
  EXPECT_EQ(SpaceOf(a), hlo::kHbmSpace);
  EXPECT_EQ(SpaceOf(b), hlo::kCmemSpace);
  EXPECT_EQ(SpaceOf(c), hlo::kCmemSpace);
  EXPECT_EQ(PlanMemory(m.module(), m.target())->PeakOf(hlo::kCmemSpace), Bytes(128 * kMiB));
}

TEST(Cmem, MoreReadersComeFirst) {
  // As above, but a is read twice more: 3 sqrt(64) against sqrt(96), and c fits beside
  // a.
  SmallModule m("v4-2x2x1");
  Instruction* x = m.Parameter({16384, 1024});
  Instruction* y = m.Parameter({24576, 1024});
  Instruction* a = m.Add(Opcode::kTanh, {16384, 1024}, {x});
  Instruction* b = m.Add(Opcode::kTanh, {24576, 1024}, {y});
  Instruction* d = m.Add(Opcode::kConcatenate, {40960, 1024}, {a, b});
  m.Return(
      {d, m.Add(Opcode::kAbs, {16384, 1024}, {a}), m.Add(Opcode::kNegate, {16384, 1024}, {a})});
  Place(m);
  EXPECT_EQ(SpaceOf(a), hlo::kCmemSpace);
  EXPECT_EQ(SpaceOf(b), hlo::kHbmSpace);
}

TEST(Cmem, NotTogetherMeansOneAfterTheOther) {
  // a (96 MiB) is gone when b (96 MiB) is made.
  SmallModule m("v4-2x2x1");
  Instruction* x = m.Parameter({24576, 1024});
  Instruction* a = m.Add(Opcode::kTanh, {24576, 1024}, {x});
  Instruction* s = m.Add(Opcode::kSlice, {8, 1024}, {a});
  Instruction* b = m.Add(Opcode::kPad, {24576, 1024}, {s});
  m.Return({m.Add(Opcode::kAbs, {24576, 1024}, {b})});
  Place(m);
  EXPECT_EQ(SpaceOf(a), hlo::kCmemSpace);
  EXPECT_EQ(SpaceOf(s), hlo::kCmemSpace);
  EXPECT_EQ(SpaceOf(b), hlo::kCmemSpace);
}

TEST(Cmem, LoopsComeFirstAndCountWhatIsAroundThem) {
  // `out` (96 MiB) lives across a loop whose body makes `in` (64 MiB): both do not fit,
  // and in a loop a read counts five times: 5 sqrt(64) against sqrt(96).
  SmallModule m("v4-2x2x1");
  const hlo::Shape carried = MakeShape(PrimitiveType::kF32, {16384, 1024});
  hlo::Computation* body = m.module().AddComputation("body");
  Instruction* p = body->AddParameter(0, carried, "p");
  Instruction* in = body->Add(Opcode::kTanh, carried, {p}, "in");
  body->set_root(body->Add(Opcode::kAbs, carried, {in}, "next"));
  body->set_schedule(body->PostOrder());
  hlo::Computation* condition = m.module().AddComputation("condition");
  Instruction* q = condition->AddParameter(0, carried, "q");
  condition->set_root(
      condition->Add(Opcode::kConstant, MakeShape(PrimitiveType::kPred, {}), {}, "go on"));
  condition->set_schedule({q, condition->root()});

  Instruction* x = m.Parameter({24576, 1024});
  Instruction* y = m.Parameter({16384, 1024});
  Instruction* out = m.Add(Opcode::kTanh, {24576, 1024}, {x});
  Instruction* loop = m.Add(Opcode::kWhile, {16384, 1024}, {y});
  loop->set_called({body, condition});
  Instruction* late = m.Add(Opcode::kAbs, {24576, 1024}, {out});
  m.Return({loop, late});
  m.entry().set_schedule({x, y, out, loop, late, m.entry().root()});
  ASSERT_TRUE(PlaceInCmem(m.module(), m.target()).ok());
  EXPECT_EQ(SpaceOf(in), hlo::kCmemSpace);
  EXPECT_EQ(SpaceOf(out), hlo::kHbmSpace);
  EXPECT_EQ(SpaceOf(loop), hlo::kHbmSpace);  // a carry
}

TEST(Cmem, PlacedModulesStayAsTheyAre) {
  // Something is in VMEM: a compiler has been here.
  SmallModule m("v4-2x2x1");
  Instruction* x = m.Parameter({256, 512});
  Instruction* t = m.Add(Opcode::kTanh, {256, 512}, {x});
  Instruction* u = m.Add(Opcode::kNegate, {256, 512}, {t});
  m.Return({m.Add(Opcode::kAbs, {256, 512}, {u})});
  hlo::Shape shape = u->shape();
  shape.layout.memory_space = hlo::kVmemSpace;
  u->set_shape(shape);
  Place(m);
  EXPECT_EQ(SpaceOf(t), hlo::kHbmSpace);
}

TEST(Cmem, LayoutsOfAnotherChipAreErrors) {
  SmallModule m("v5e-2x2");
  Instruction* x = m.Parameter({256, 512});
  hlo::Shape shape = x->shape();
  shape.layout.memory_space = hlo::kCmemSpace;
  x->set_shape(shape);
  m.Return({m.Add(Opcode::kAbs, {256, 512}, {x})});
  m.entry().set_schedule(m.entry().PostOrder());
  EXPECT_THAT(Message(PlaceInCmem(m.module(), m.target()).status()),
              HasSubstr("is in CMEM (S(3) in its layout), which v5e does not have"));
}

TEST(Cmem, StatedPlacesThatDoNotFitAreErrors) {
  SmallModule m("v4-2x2x1");
  Instruction* x = m.Parameter({65536, 1024});  // 256 MiB
  hlo::Shape shape = x->shape();
  shape.layout.memory_space = hlo::kCmemSpace;
  x->set_shape(shape);
  m.Return({m.Add(Opcode::kAbs, {65536, 1024}, {x})});
  Place(m);
  EXPECT_THAT(Message(PlanMemory(m.module(), m.target()).status()),
              HasSubstr("does not fit: 256.0 MiB at its peak, v4 has 128.0 MiB"));
}

}  // namespace
}  // namespace tpusim::passes
