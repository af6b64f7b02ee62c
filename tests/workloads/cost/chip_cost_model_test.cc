#include "workloads/cost/chip_cost_model.h"

#include <gtest/gtest.h>

#include <tuple>
#include <vector>

#include "configs/status_macros.h"
#include "tests/workloads/passes/small_module.h"
#include "workloads/hlo/ir/attributes.h"

namespace tpusim::cost {
namespace {

using passes::SmallModule;
using namespace hlo;  // NOLINT: builders of modules

ChipCostModel CostsOf(const SmallModule& m) {
  return {m.target(), {0, 1, 2, 3}, {}, [](const Instruction&) -> absl::StatusOr<int64_t> {
            return 7;
          }};
}

// A fusion of two operations, in `to`.
Instruction* Fusion(SmallModule& to, Instruction* x) {
  Computation* inner = to.module().AddComputation("fused");
  Instruction* p = inner->AddParameter(0, x->shape(), "p");
  Instruction* t = inner->Add(Opcode::kTanh, x->shape(), {p});
  inner->set_root(inner->Add(Opcode::kAdd, x->shape(), {t, p}));
  Instruction* fusion = to.Add(Opcode::kFusion, x->shape().dims, {x});
  fusion->mutable_attrs().set_fusion_kind("kLoop");
  fusion->set_called({inner});
  return fusion;
}

TEST(ChipCostModel, AFusionNeedNotBeInTheProgramToBePriced) {
  SmallModule program, scratch;
  ChipCostModel costs = CostsOf(program);
  const auto there = costs.KernelTime(*Fusion(program, program.Parameter({1024, 1024})));
  const auto elsewhere = costs.KernelTime(*Fusion(scratch, scratch.Parameter({1024, 1024})));
  ASSERT_TRUE(there.ok() && elsewhere.ok());
  EXPECT_EQ(*there, *elsewhere);
  // Remembered: one structure.
  EXPECT_EQ(costs.kernels().searches(), 1);
  EXPECT_EQ(costs.kernels().requests(), 2);
}

TEST(ChipCostModel, KernelsUseTheHbmTheyRead) {
  SmallModule m;
  ChipCostModel costs = CostsOf(m);
  const Instruction* fusion = Fusion(m, m.Parameter({4096, 4096}));
  const auto work = costs.WorkOf(*fusion);
  ASSERT_TRUE(work.ok());
  EXPECT_EQ(work->alone(), costs.KernelTime(*fusion).value());
  // 64 MiB in and out: HBM is all that counts.
  EXPECT_GT(work->share[kHbmResource], 0.9);
  EXPECT_EQ(work->share[kLinkResource], 0);
}

int NumberOf(const KernelGraph& graph, const Instruction* i) {
  for (int n = 0; n < graph.size(); ++n) {
    if (&graph.At(n) == i) return n;
  }
  ADD_FAILURE() << i->name() << " is not in the graph";
  return 0;
}

TEST(ChipCostModel, ACopyBetweenLayoutsTakesWhatItsKernelTakes) {
  SmallModule m;
  ChipCostModel costs = CostsOf(m);
  Instruction* x = m.Parameter({2048, 512});
  Instruction* copy = m.Add(Opcode::kCopy, {2048, 512}, {x});
  m.Return({copy});
  Shape turned = x->shape();
  turned.layout.minor_to_major = {0, 1};
  const auto price = costs.PriceOfCopy(x->shape(), turned);
  ASSERT_TRUE(price.ok()) << price.status();
  // 4 MiB in and 4 MiB out, but for the last byte of a step.
  EXPECT_NEAR(price->moved.value(), 2 * 4 * 1024 * 1024, 100);
  // The instruction once its result lies so, and its bound.
  copy->set_shape(turned);
  EXPECT_EQ(price->time, costs.KernelTime(*copy).value());
  const KernelGraph graph(m.entry());
  const std::vector<int> members = {NumberOf(graph, copy)};
  EXPECT_LE(costs.CandidatesOf(graph)->BoundOf({members, members}).time, price->time);
}

// 8 MiB in and 8 MiB out; of what is in VMEM nothing is moved.
TEST(ChipCostModel, BoundsOfCandidatesMoveWhatIsInHbm) {
  SmallModule m;
  ChipCostModel costs = CostsOf(m);
  Instruction* x = m.Parameter({4096, 512});
  Instruction* t = m.Add(Opcode::kTanh, {4096, 512}, {x});
  Instruction* y = m.Add(Opcode::kNegate, {4096, 512}, {t});
  m.Return({y});
  const auto bound = [&] {
    const KernelGraph graph(m.entry());
    const std::vector<int> members = {NumberOf(graph, t), NumberOf(graph, y)};
    const std::vector<int> roots = {members[1]};
    return costs.CandidatesOf(graph)->BoundOf({members, roots});
  };
  const Price here = bound();
  EXPECT_EQ(here.moved, Bytes(16 * 1024 * 1024));
  Shape in_vmem = x->shape();
  in_vmem.layout.memory_space = kVmemSpace;
  x->set_shape(in_vmem);
  EXPECT_EQ(bound().moved, Bytes(8 * 1024 * 1024));
  EXPECT_LT(bound().time, here.time);
}

// 5.4 us at 45 GB/s, at 90 GB/s; 11 us at 90 GB/s. A hop is 1 us.
TEST(ChipCostModel, ReshardsKnowTheLatenciesOfTheChip) {
  for (const auto& [slice, start, hop] : {std::tuple("v5e-2x2", 243'000, 45'000),
                                          {"v6e-2x2", 486'000, 90'000},
                                          {"v7x-2x2x1", 990'000, 90'000}}) {
    const auto config = configs::LoadConfig(slice, {});
    ASSERT_TRUE(config.ok());
    EXPECT_EQ(LatencyOfReshards(config->chip).start, Bytes(start)) << slice;
    EXPECT_EQ(LatencyOfReshards(config->chip).hop, Bytes(hop)) << slice;
  }
}

TEST(ChipCostModel, StartsCostNothingThemselves) {
  SmallModule m;
  ChipCostModel costs = CostsOf(m);
  Instruction* x = m.Parameter({1024, 1024});
  Instruction* start = m.entry().Add(Opcode::kCollectivePermuteStart,
                                     MakeTupleShape({x->shape(), x->shape()}), {x}, "start");
  SetSourceTargetPairs(start, {{0, 1}, {1, 0}});
  ASSERT_TRUE(costs.WorkOf(*start).ok());
  EXPECT_EQ(costs.WorkOf(*start)->alone(), Picoseconds(0));
  const auto transfer = costs.TransferOf(*start);
  ASSERT_TRUE(transfer.ok()) << transfer.status();
  // 4 MiB over a link of 45 GB/s: 93 us.
  EXPECT_GT(ToSeconds(transfer->alone()), 80e-6);
  EXPECT_LT(ToSeconds(transfer->alone()), 130e-6);
  EXPECT_EQ(costs.TripsOf(*start).value(), 7);
}

}  // namespace
}  // namespace tpusim::cost
