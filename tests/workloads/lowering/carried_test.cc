#include "workloads/lowering/carried.h"

#include <gtest/gtest.h>

#include <variant>

#include "tests/workloads/passes/small_module.h"
#include "workloads/passes/collectives/collectives.h"

namespace tpusim::lowering {
namespace {

using hlo::Instruction;
using hlo::Opcode;
using passes::SmallModule;

// The start of a collective of one array over all devices.
Instruction* StartOfOne(SmallModule& m, Opcode opcode, hlo::Shape shape) {
  Instruction* x = m.Parameter({256, 512});
  m.Return({m.entry().Add(opcode, shape, {x}, "collective")});
  EXPECT_TRUE(passes::MakeCollectivesAsync(m.module(), m.context()).ok());
  return m.entry().root()->operand(0)->operand(0);
}

const hlo::Shape kGathered = hlo::MakeShape(hlo::PrimitiveType::kF32, {2048, 512});

TEST(Carried, AllGathersWithoutSparseCores) {
  SmallModule v5e("v5e-4x2"), v7x("v7x-2x2x1");
  EXPECT_TRUE(IsCarried(*StartOfOne(v5e, Opcode::kAllGather, kGathered)));
  EXPECT_FALSE(IsCarried(*StartOfOne(v7x, Opcode::kAllGather, kGathered)));
}

TEST(Carried, PermutesMoveByThemselves) {
  SmallModule m("v5e-4x2");
  EXPECT_FALSE(IsCarried(*StartOfOne(m, Opcode::kCollectivePermute,
                                     hlo::MakeShape(hlo::PrimitiveType::kF32, {256, 512}))));
}

// The own shard of 256 x 512 x 4 bytes, and what the barrier takes longer than that.
TEST(Carried, TheStartPutsTheOwnShardInItsPlace) {
  SmallModule m("v5e-4x2");
  const isa::Body body =
      BeginOfCarried(*StartOfOne(m, Opcode::kAllGather, kGathered), m.target().chip());
  ASSERT_EQ(body.size(), 2u);
  const auto& copy = std::get<isa::Dma>(body[0].kind);
  const Cycles barrier = ToCycles(m.target().chip().ici.launch, m.target().chip().clock);
  EXPECT_GT(std::get<isa::Block>(body[1].kind).latency, Cycles(0));
  EXPECT_LT(std::get<isa::Block>(body[1].kind).latency, barrier);
  EXPECT_EQ(copy.bytes, Bytes(524'288));
  EXPECT_EQ(copy.from, isa::MemorySpace::kHbm);
  EXPECT_EQ(copy.to, isa::MemorySpace::kHbm);
}

}  // namespace
}  // namespace tpusim::lowering
