#include "workloads/passes/spaces/memory_space_assignment.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "configs/status_macros.h"
#include "tests/workloads/passes/pass_test.h"
#include "tests/workloads/passes/small_module.h"
#include "workloads/buffers/memory_plan.h"
#include "workloads/cost/chip_cost_model.h"
#include "workloads/hlo/io/text_parser.h"

namespace tpusim::passes {
namespace {

using ::testing::HasSubstr;

int64_t SpaceOf(const Instruction* i) { return i->shape().layout.memory_space; }

absl::StatusOr<bool> Assign(SmallModule& m) {
  cost::ChipCostModel costs(m.target(), {0}, {},
                            [](const Instruction&) -> absl::StatusOr<int64_t> { return 4; });
  return AssignMemory(m.module(), {m.target(), &costs});
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
  EXPECT_EQ(SpaceOf(t), hlo::kCmemSpace);
  EXPECT_EQ(SpaceOf(row), hlo::kCmemSpace);  // another name of it
  EXPECT_EQ(SpaceOf(u), hlo::kCmemSpace);
  EXPECT_EQ(SpaceOf(y), hlo::kHbmSpace);
  // 512 KiB each: t and u live together while u is made; x and y fill HBM.
  const auto plan = buffers::PlanMemory(m.module(), m.target());
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->PeakOf(hlo::kCmemSpace), Bytes(1024 * kKiB));
  EXPECT_EQ(plan->PeakOf(hlo::kHbmSpace), Bytes(1024 * kKiB));
  EXPECT_EQ(plan->live_at_peak.size(), 2u);
}

TEST(Cmem, LeavesOtherReadersTheirHbm) {
  // A loop takes t; w is written into place.
  SmallModule m("v4-2x2x1");
  const hlo::Shape carried = MakeShape(PrimitiveType::kF32, {256, 512});
  hlo::Computation* body = m.module().AddComputation("body");
  Instruction* p = body->AddParameter(0, carried, "p");
  body->set_root(body->Add(Opcode::kAbs, carried, {p}, "next"));
  hlo::Computation* condition = m.module().AddComputation("condition");
  condition->AddParameter(0, carried, "q");
  condition->set_root(
      condition->Add(Opcode::kConstant, MakeShape(PrimitiveType::kPred, {}), {}, "go on"));
  Instruction* x = m.Parameter({256, 512});
  Instruction* index = m.Parameter({}, PrimitiveType::kS32);
  Instruction* t = m.Add(Opcode::kTanh, {256, 512}, {x});
  Instruction* w = m.Add(Opcode::kAbs, {256, 512}, {x});
  Instruction* part = m.Add(Opcode::kTanh, {8, 512}, {m.Parameter({8, 512})});
  Instruction* loop = m.Add(Opcode::kWhile, {256, 512}, {t});
  loop->set_called({body, condition});
  m.Return({loop, m.Add(Opcode::kDynamicUpdateSlice, {256, 512}, {w, part, index, index})});
  Place(m);
  for (const Instruction* i : {t, w}) EXPECT_EQ(SpaceOf(i), hlo::kHbmSpace) << i->name();
}

TEST(Vmem, HoldsWhatIsMadeAndUsedUp) {
  SmallModule m("v5e-2x2");
  Instruction* x = m.Parameter({256, 512});
  Instruction* t = m.Add(Opcode::kTanh, {256, 512}, {x});
  Instruction* y = m.Add(Opcode::kAbs, {256, 512}, {t});
  m.Return({y});
  Place(m);
  EXPECT_EQ(SpaceOf(x), hlo::kHbmSpace);
  EXPECT_EQ(SpaceOf(t), hlo::kVmemSpace);
  EXPECT_EQ(SpaceOf(y), hlo::kHbmSpace);
  EXPECT_EQ(buffers::PlanMemory(m.module(), m.target())->PeakOf(hlo::kHbmSpace),
            Bytes(1024 * kKiB));
}

TEST(Vmem, SharesItWithTheWindowsOfKernels) {
  // 128 MiB: t of 124 does not fit beside the windows of the product, t of 104 does.
  for (const auto& [rows, space] : {std::pair(31744, hlo::kHbmSpace), {26624, hlo::kVmemSpace}}) {
    SmallModule m("v5e-2x2");
    Instruction* x = m.Parameter({8192, 8192});
    Instruction* w = m.Parameter({8192, 8192});
    Instruction* t = m.Add(Opcode::kTanh, {rows, 1024}, {m.Parameter({rows, 1024})});
    Instruction* product = m.Dot({8192, 8192}, x, w);
    Instruction* u = m.Add(Opcode::kAbs, {rows, 1024}, {t});
    m.Return({product, u});
    m.entry().set_schedule({m.entry().parameters()[0], m.entry().parameters()[1],
                            m.entry().parameters()[2], t, product, u, m.entry().root()});
    ASSERT_TRUE(Assign(m).ok());
    EXPECT_EQ(SpaceOf(t), space) << rows;
  }
}

TEST(Vmem, PrefetchesWhatAKernelWaitsForBesideOneThatDoesNotNeedHbm) {
  // The product keeps the arrays busy for milliseconds; w is copied meanwhile, and the
  // product of few rows, which is bound by its weights, reads the copy.
  SmallModule m("v5e-2x2");
  Instruction* x = m.Parameter({4096, 4096});
  Instruction* y = m.Parameter({4096, 4096});
  Instruction* few = m.Parameter({8, 4096});
  Instruction* w = m.Parameter({4096, 4096});
  Instruction* busy = m.Dot({4096, 4096}, x, y);
  Instruction* bound = m.Dot({8, 4096}, few, w);
  m.Return({busy, bound});
  m.entry().set_schedule({x, y, few, w, busy, bound, m.entry().root()});
  ASSERT_TRUE(Assign(m).ok());
  const Instruction* copy = bound->operand(1);
  EXPECT_EQ(CopiedBy(copy), w);
  EXPECT_EQ(SpaceOf(copy), hlo::kVmemSpace);
  EXPECT_EQ(busy->operand(1), y);  // nothing is before it
  // Started before the product, over before it is read.
  const std::vector<Instruction*> order = m.entry().schedule();
  const auto at = [&](const Instruction* i) {
    return std::find(order.begin(), order.end(), i) - order.begin();
  };
  EXPECT_LT(at(copy->operand(0)), at(busy));
  EXPECT_LT(at(busy), at(copy));
  EXPECT_LT(at(copy), at(bound));
}

TEST(Vmem, CopiesToHbmWhatIsAResultToo) {
  // t is read by a kernel and returned: made in VMEM, copied beside the product.
  SmallModule m("v5e-2x2");
  Instruction* x = m.Parameter({4096, 4096});
  Instruction* y = m.Parameter({4096, 4096});
  Instruction* z = m.Parameter({1024, 1024});
  Instruction* t = m.Add(Opcode::kTanh, {1024, 1024}, {z});
  Instruction* u = m.Add(Opcode::kAbs, {1024, 1024}, {t});
  Instruction* busy = m.Dot({4096, 4096}, x, y);
  m.Return({busy, u, t});
  m.entry().set_schedule({x, y, z, t, u, busy, m.entry().root()});
  ASSERT_TRUE(Assign(m).ok());
  EXPECT_EQ(SpaceOf(t), hlo::kVmemSpace);
  EXPECT_EQ(u->operand(0), t);
  const Instruction* result = m.entry().root()->operand(2);
  EXPECT_EQ(CopiedBy(result), t);
  EXPECT_EQ(SpaceOf(result), hlo::kHbmSpace);
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
  const auto plan = buffers::PlanMemory(m.module(), m.target());
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_LE(plan->PeakOf(hlo::kCmemSpace), Bytes(128 * kMiB));
  for (size_t n = 0; n < made.size(); ++n) {
    EXPECT_EQ(SpaceOf(made[n]), hlo::kCmemSpace);
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
    const auto plan = buffers::PlanMemory(m.module(), m.target());
    EXPECT_TRUE(plan.ok()) << variant << ": " << plan.status();
  }
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
  EXPECT_EQ(buffers::PlanMemory(m.module(), m.target())->PeakOf(hlo::kCmemSpace),
            Bytes(128 * kMiB));
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
  Instruction* s = m.Dot({8, 1024}, m.Parameter({8, 24576}), a);
  Instruction* b = m.Dot({24576, 1024}, m.Parameter({24576, 8}), s);
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
  ASSERT_TRUE(Assign(m).ok());
  EXPECT_EQ(SpaceOf(in), hlo::kCmemSpace);
  EXPECT_EQ(SpaceOf(out), hlo::kHbmSpace);
  EXPECT_EQ(SpaceOf(loop), hlo::kHbmSpace);  // a carry
}

// The module as text after the assignment, or the error.
std::string AssignedText(const std::string& text, const std::string& slice) {
  const configs::Config config = configs::LoadConfig(slice, {}).value();
  const target::Target target(config);
  const std::shared_ptr<hlo::Module> module = hlo::ParseHloText(text).value().module;
  cost::ChipCostModel costs(target, {0}, {},
                            [](const Instruction&) -> absl::StatusOr<int64_t> { return 4; });
  const absl::StatusOr<bool> changed = AssignMemory(*module, {target, &costs});
  return changed.ok() ? Canonical(*module) : Message(changed.status());
}

// x of 2 MiB, which the program puts into VMEM, and two values of 512 KiB.
constexpr std::string_view kPlaced = R"(HloModule m, is_scheduled=true
ENTRY e {{
  x = f32[{0},512]{{1,0:S(1)}} parameter(0)
  y = f32[{1},512]{{1,0}} parameter(1)
  t = f32[{1},512]{{1,0}} tanh(y)
  u = f32[{1},512]{{1,0}} negate(t)
  last = f32[{0},512]{{1,0}} abs(x)
  ROOT r = (f32[{1},512]{{1,0}}, f32[{0},512]{{1,0}}) tuple(u, last)
}})";

// The rest is assigned beside it.
TEST(Vmem, WhatTheProgramPlacesStaysAndOthersCome) {
  EXPECT_TRUE(HasLines(AssignedText(fmt::format(kPlaced, 1024, 256), "v5e-2x2"), R"(
    f32[1024,512]{1,0:S(1)} parameter(0)
    f32[256,512]{1,0:S(1)} tanh(
    f32[256,512]{1,0} negate(
    f32[1024,512]{1,0} abs(
  )"));
}

// 128 MiB of VMEM: t of 24 MiB fits beside x of 100, not beside one of 120.
TEST(Vmem, WhatTheProgramPlacesTakesItsRoom) {
  EXPECT_TRUE(HasLines(AssignedText(fmt::format(kPlaced, 100 * 512, 24 * 512), "v5e-2x2"),
                       "f32[12288,512]{1,0:S(1)} tanh("));
  EXPECT_TRUE(HasLines(AssignedText(fmt::format(kPlaced, 120 * 512, 24 * 512), "v5e-2x2"),
                       "f32[12288,512]{1,0} tanh("));
  EXPECT_EQ(AssignedText(fmt::format(kPlaced, 130 * 512, 512), "v5e-2x2"),
            "what the program itself puts into VMEM (S(1) in layouts) does not fit: 136314880 B at "
            "its peak in e, v5e has 134217728 B");
}

// A value of the program's own: until its last reader, not longer.
TEST(Vmem, WhatTheProgramMakesThereLeavesItsRoom) {
  const auto text = [](std::string_view first, std::string_view second) {
    return AssignedText(
        fmt::format(R"(HloModule m, is_scheduled=true
ENTRY e {{
  x = f32[51200,512]{{1,0}} parameter(0)
  y = f32[51200,512]{{1,0}} parameter(1)
  placed = f32[51200,512]{{1,0:S(1)}} tanh(x)
  {}
  {}
  v = f32[51200,512]{{1,0}} abs(u)
  ROOT r = (f32[51200,512]{{1,0}}, f32[51200,512]{{1,0}}) tuple(used, v)
}})",
                    first, second),
        "v5e-2x2");
  };
  const std::string_view used = "used = f32[51200,512]{1,0} negate(placed)";
  const std::string_view u = "u = f32[51200,512]{1,0} cosine(y)";
  EXPECT_TRUE(HasLines(text(used, u), "f32[51200,512]{1,0:S(1)} cosine("));
  EXPECT_TRUE(HasLines(text(u, used), "f32[51200,512]{1,0} cosine("));
}

// What is in VMEM takes nothing of CMEM.
TEST(Cmem, OtherMemoriesHaveTheirOwnRoom) {
  EXPECT_TRUE(HasLines(AssignedText(fmt::format(kPlaced, 1024, 256), "v4-2x2x1"), R"(
    f32[1024,512]{1,0:S(1)} parameter(0)
    f32[256,512]{1,0:S(3)} tanh(
  )"));
}

TEST(Cmem, LayoutsOfAnotherChipAreErrors) {
  SmallModule m("v5e-2x2");
  Instruction* x = m.Parameter({256, 512});
  hlo::Shape shape = x->shape();
  shape.layout.memory_space = hlo::kCmemSpace;
  x->set_shape(shape);
  m.Return({m.Add(Opcode::kAbs, {256, 512}, {x})});
  m.entry().set_schedule(m.entry().PostOrder());
  EXPECT_THAT(Message(Assign(m).status()),
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
  EXPECT_THAT(Message(buffers::PlanMemory(m.module(), m.target()).status()),
              HasSubstr("does not fit: 256.0 MiB at its peak, v4 has 128.0 MiB"));
}

}  // namespace
}  // namespace tpusim::passes
