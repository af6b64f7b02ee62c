#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/workloads/buffers/checked_plan.h"
#include "tests/workloads/passes/pass_test.h"
#include "tests/workloads/passes/small_module.h"
#include "workloads/buffers/fits.h"
#include "workloads/hlo/ir/attributes.h"

namespace tpusim::buffers {
namespace {

using hlo::Instruction;
using hlo::MakeShape;
using hlo::Opcode;
using hlo::PrimitiveType;
using passes::PassText;
using passes::SmallModule;
using ::testing::HasSubstr;

TEST(Memory, PeakIsArgumentsAndWhatLivesTogether) {
  // x is 256*512*4 = 512 KiB and lives throughout. t dies when y has been made, y
  // when z has been made: two results at most beside x, 1.5 MiB.
  SmallModule m;
  Instruction* x = m.Parameter({256, 512});
  Instruction* t = m.Add(Opcode::kTanh, {256, 512}, {x});
  Instruction* y = m.Add(Opcode::kNegate, {256, 512}, {t});
  m.Return({m.Add(Opcode::kAbs, {256, 512}, {y})});
  m.entry().set_schedule(m.entry().PostOrder());
  const MemoryPlan plan = CheckedPlan(m.module(), m.target());
  EXPECT_EQ(plan.PeakOf(hlo::kHbmSpace), Bytes(3 * 512 * kKiB));
  EXPECT_EQ(plan.live_at_peak.size(), 3u);
}

TEST(Memory, APlanIsListedByBuffer) {
  SmallModule m;
  Instruction* x = m.Parameter({256, 512});
  Instruction* t = m.Add(Opcode::kTanh, {256, 512}, {x});
  Instruction* y = m.Add(Opcode::kNegate, {256, 512}, {t});
  m.Return({m.Add(Opcode::kAbs, {256, 512}, {y})});
  m.entry().set_schedule(m.entry().PostOrder());
  const std::string text = ToString(CheckedPlan(m.module(), m.target()));
  EXPECT_THAT(text, HasSubstr("peak of S(0): 1572864 bytes, 0 of them holes, at "));
  EXPECT_THAT(text, HasSubstr("524288  " + x->name() + ": argument\n"));
  // t is over when the result is made, in whose buffer it lies.
  EXPECT_THAT(text, HasSubstr("524288  " + t->name() + ": in buffer 3\n"));
  EXPECT_THAT(text, HasSubstr("524288  " + y->name() + ": " + y->name() + " .. "));
}

// The peak of x, t = tanh(x), z = -t with x donated or aliased; 512 KiB each.
Bytes PeakOfChain(int64_t shape_of_donor, bool alias, bool late_use) {
  SmallModule m;
  Instruction* x = m.Parameter({256, 512});
  Instruction* other = m.Parameter({shape_of_donor, 512});
  Instruction* t = m.Add(Opcode::kTanh, {256, 512}, {x});
  Instruction* z = m.Add(Opcode::kAdd, {256, 512}, {t, late_use ? x : t});
  Instruction* y = m.Add(Opcode::kAbs, {shape_of_donor, 512}, {other});
  m.Return({z, y});
  auto& fields = m.module().mutable_fields();
  if (alias) {
    auto* entry = fields.mutable_input_output_alias()->add_entries();
    entry->add_output_shape_index(0);
    entry->set_parameter_number(0);
  } else {
    fields.mutable_buffer_donor()->add_entries()->set_parameter_number(0);
  }
  m.entry().set_schedule(m.entry().PostOrder());
  return CheckedPlan(m.module(), m.target()).PeakOf(hlo::kHbmSpace);
}

TEST(Memory, ADonatedArgumentIsWrittenOver) {
  // Without: x, other, t, z: 2 MiB, then x, other, z, y. With: z is in x, and t
  // beside it, later y.
  EXPECT_EQ(PeakOfChain(256, /*alias=*/true, /*late_use=*/false), Bytes(1536 * kKiB));
  // The first result of that shape.
  EXPECT_EQ(PeakOfChain(256, /*alias=*/false, /*late_use=*/false), Bytes(1536 * kKiB));
  // The same when the last reader of x is the one that makes z, element by element.
  EXPECT_EQ(PeakOfChain(256, /*alias=*/true, /*late_use=*/true), Bytes(1536 * kKiB));
}

TEST(Memory, WhatIsReadLaterIsNotWrittenOver) {
  // z = x transposed cannot overwrite x: the argument and the result, 1 MiB.
  for (const bool elementwise : {false, true}) {
    SmallModule m;
    Instruction* x = m.Parameter({512, 512});
    Instruction* z = m.Add(elementwise ? Opcode::kAbs : Opcode::kTranspose, {512, 512}, {x});
    if (!elementwise) hlo::SetDimensions(z, {1, 0});
    m.Return({z});
    auto* entry = m.module().mutable_fields().mutable_input_output_alias()->add_entries();
    entry->add_output_shape_index(0);
    entry->set_parameter_number(0);
    m.entry().set_schedule(m.entry().PostOrder());
    EXPECT_EQ(CheckedPlan(m.module(), m.target()).PeakOf(hlo::kHbmSpace),
              Bytes((elementwise ? 1 : 2) * kMiB));
  }
}

// Naming one element of a tuple late says nothing of the others: k dies with its reader a, before u
// comes. x, k, v, then x, v, u, and f32[8,128] each of a, b, c, which are results.
TEST(Memory, AnElementNamedLateKeepsNoOther) {
  PassText test(R"(HloModule m, is_scheduled=true
order {
  p = f32[] parameter(0)
  q = f32[] parameter(1)
  r = f32[] parameter(2)
  s = f32[] parameter(3)
  ROOT less = pred[] compare(p, q), direction=LT
}
ENTRY e {
  x = f32[512,512]{1,0} parameter(0)
  kv = (f32[512,512]{1,0}, f32[512,512]{1,0}) sort(x, x), dimensions={1}, to_apply=order
  k = f32[512,512]{1,0} get-tuple-element(kv), index=0
  a = f32[8,128]{1,0} slice(k), slice={[0:8], [0:128]}
  u = f32[512,512]{1,0} tanh(x)
  b = f32[8,128]{1,0} slice(u), slice={[0:8], [0:128]}
  v = f32[512,512]{1,0} get-tuple-element(kv), index=1
  c = f32[8,128]{1,0} slice(v), slice={[0:8], [0:128]}
  ROOT t = (f32[8,128]{1,0}, f32[8,128]{1,0}, f32[8,128]{1,0}) tuple(a, b, c)
})",
                "v5e-1x1");
  const configs::Config config = configs::LoadConfig("v5e-1x1", {}).value();
  const MemoryPlan plan = CheckedPlan(test.module(), target::Target(config));
  EXPECT_EQ(plan.PeakOf(hlo::kHbmSpace) - plan.fragmentation, Bytes(3 * kMiB + 3 * 4 * kKiB));
}

TEST(Memory, BuffersArePaddedToTiles) {
  // f32[16,64]: 16 rows x 128 lanes x 4 bytes = 8 KiB, as the TPU compiler sizes it.
  SmallModule m;
  EXPECT_EQ(m.target().PaddedSize(MakeShape(PrimitiveType::kF32, {16, 64})), Bytes(8 * kKiB));
  // One row of bf16 shares its 32-bit words with a second one: T(2,128)(2,1).
  EXPECT_EQ(m.target().PaddedSize(MakeShape(PrimitiveType::kBf16, {1, 128})), Bytes(512));
}

TEST(Memory, WhatDoesNotFitSaysByHowMuch) {
  SmallModule m;
  Instruction* x = m.Parameter({1 << 16, 1 << 16});  // 16 GiB
  m.Return({m.Add(Opcode::kTanh, {1 << 16, 1 << 16}, {x})});
  m.entry().set_schedule(m.entry().PostOrder());
  const MemoryPlan plan = CheckedPlan(m.module(), m.target());
  const absl::Status fits = CheckFits(m.module(), plan, m.target());
  ASSERT_FALSE(fits.ok());
  // 32 GiB needed of 15.75 GiB usable: 16.25 GiB too much.
  EXPECT_NE(std::string(fits.message()).find("16.25 GiB more"), std::string::npos) << fits;
  EXPECT_NE(std::string(fits.message()).find("f32[65536,65536]"), std::string::npos);
}

}  // namespace
}  // namespace tpusim::buffers
