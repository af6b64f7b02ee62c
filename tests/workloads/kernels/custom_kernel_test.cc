// Custom calls: Pallas kernels, callbacks, stated costs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <string>

#include "models/timing/kernel_time.h"
#include "models/timing/kernel_timing.h"
#include "tests/workloads/kernels/kernel_families.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/rules/assumed_trips.h"
#include "workloads/kernels/opaque/custom_cost.h"

namespace tpusim::kernels {
namespace {

using CustomKernels = KernelFamilies;

TEST_F(CustomKernels, CustomCallsNeedACost) {
  Instruction* x = m_.Param(F32({1024, 1024}));
  Instruction* call = m_.Add(Opcode::kCustomCall, F32({1024, 1024}), {x});
  call->mutable_attrs().set_custom_call_target("tpu_custom_call");
  const auto missing = BuildKernel(*call, target_);
  EXPECT_THAT(Message(missing.status()), ::testing::HasSubstr("--kernel-cost custom-call="));
  SetCustomCosts(m_.module(), {{"custom*", {Flops(2'147'483'648), Flops(0), Bytes(8 * kMiB)}}});
  const isa::Kernel kernel = Build(call);
  // Every step is rounded up: at most a byte per window and a row of eight.
  EXPECT_GE(Moved(kernel), Bytes(8 * kMiB));
  EXPECT_LE(Moved(kernel), Bytes(8 * kMiB + 2 * kernel.Steps()));
  // 2^31 FLOPs are 1024 x 1024 x 1024 x 2: 16384 cycles of four arrays that keep their rate up.
  configs::ChipParams chip = target_.chip();
  chip.mxu.efficiency = 1;
  const int64_t cycles = timing::TimeBlock(chip, kernel.block).mxu.value() * kernel.Steps();
  EXPECT_GE(cycles, 16384);
  EXPECT_LE(cycles, 16384 + 8 * kernel.Steps());
}

// Four matrices of 512 x 512: 2048 columns, each a chain of 28 cycles per pass over the panel
// (AlgebraKernels.CholeskyIsAChainOfColumns).
TEST_F(CustomKernels, FactorizationsAreChainsOfColumnsAndProducts) {
  struct Expected {
    std::string_view target;
    int64_t passes;  // over a panel, per column
    int64_t flops;   // of products: of QR 2 m n^2 - 2/3 n^3 less the first panel's, of LU half
  };
  const int64_t trailing = int64_t{128} * (512 - 512 / 3) * 256 * 2;  // of one product, one matrix
  for (const Expected& e : {Expected{kQrTarget, 3, 2 * 3 * 4 * trailing},
                            Expected{kMakeQTarget, 1, 2 * 4 * 4 * trailing},
                            Expected{kLuTarget, 3, 3 * 4 * trailing}}) {
    Instruction* x = m_.Param(F32({4, 512, 512}));
    Instruction* call = m_.Add(Opcode::kCustomCall, F32({4, 512, 512}), {x});
    call->mutable_attrs().set_custom_call_target(std::string(e.target));
    EXPECT_TRUE(HasKernelOfItsOwn(*call));
    const isa::Kernel kernel = Build(call);
    const int64_t steps = kernel.Steps();
    EXPECT_EQ(kernel.block.latency.value() * steps, e.passes * 2048 * 28) << e.target;
    const isa::MxuWork& mxu = kernel.block.mxu;
    EXPECT_EQ(2 * mxu.m * mxu.k * mxu.n * mxu.batch * steps, e.flops) << e.target;
    // A stated cost is the whole cost.
    SetCustomCosts(m_.module(), {{call->name(), {Flops(1), Flops(0), Bytes(8)}}});
    EXPECT_FALSE(HasKernelOfItsOwn(*call));
  }
}

// 128 x 128: quadrants of 64 x 64 have eight registers each, 32 in all. Eight sweeps of 127
// rounds, each a step of the grid over what stays in VMEM: 9 operations per register for the
// rotations and 10/4 for the diagonals, and a chain of 8 x 2 + 4 x 2 + 2 x 9 cycles.
TEST_F(CustomKernels, EigenvectorsTakeRoundsOfRotations) {
  const auto eigh = [&](const Shape& a, const Shape& values) {
    Instruction* call =
        m_.Add(Opcode::kCustomCall, hlo::MakeTupleShape({a, values}), {m_.Param(a)});
    call->mutable_attrs().set_custom_call_target("Eigh");
    return call;
  };
  Instruction* one = eigh(F32({128, 128}), F32({128}));
  EXPECT_TRUE(HasKernelOfItsOwn(*one));
  const isa::Kernel kernel = Build(one);
  EXPECT_EQ(kernel.Steps(), 8 * 127);
  EXPECT_EQ(kernel.block.valu, 32 * 9 + 32 * 10 / 4);
  EXPECT_EQ(kernel.block.load, 64);
  EXPECT_EQ(kernel.block.store, 64);
  EXPECT_EQ(kernel.block.xlu, 96);
  EXPECT_EQ(kernel.block.eup, 4);
  EXPECT_EQ(kernel.block.latency, Cycles(16 + 8 + 18));
  // Read once and written once, with one row of eigenvalues in a register of its own.
  EXPECT_LE(Moved(kernel), Bytes(2 * 64 * kKiB + 4 * kKiB));
  EXPECT_GE(Moved(kernel), Bytes(2 * 64 * kKiB + 512));
  const auto time = [&](const Instruction* call) {
    return timing::KernelTime(target_.chip(), Build(call));
  };
  // Fewer sweeps, and fewer or smaller matrices, take less.
  const Picoseconds all = time(one);
  EXPECT_LT(time(eigh(F32({127, 127}), F32({127}))).value(), all.value() + 1);
  EXPECT_LT(time(eigh(F32({96, 96}), F32({96}))), all);
  EXPECT_GT(time(eigh(F32({2, 128, 128}), F32({2, 128}))), all);
  // 16 MiB in, 16 out: streams through VMEM in every round.
  EXPECT_GT(time(eigh(F32({2048, 2048}), F32({2048}))), all * 256);
  hlo::SetSweeps(one, 4);
  EXPECT_EQ(Build(one).Steps(), 4 * 127);
  EXPECT_LT(time(one), all);
}

// 2 MiB in and out: kernels of a stated time take it to the step's rounding (16 steps of half a
// picosecond), with all of their bytes.
TEST_F(CustomKernels, AStatedTimeIsTheTime) {
  for (const auto& [flops, time] :
       {std::pair(Flops(0), Microseconds(50)), std::pair(Flops(1 << 20), Nanoseconds(12'500))}) {
    CustomCost cost{flops, Flops(0), Bytes(2 * kMiB)};
    cost.time = time;
    const isa::Kernel kernel = BuildTimedKernel(cost, Bytes(kMiB), "call", target_);
    const Picoseconds takes = timing::KernelTime(target_.chip(), kernel);
    EXPECT_LE(takes, time);
    EXPECT_GE(takes, time - Picoseconds(16));
    EXPECT_EQ(Moved(kernel), Bytes(2 * kMiB));
    EXPECT_EQ(kernel.block.stated_products, flops > Flops(0));
  }
}

// A time alone leaves the rest of what is known; what the chip cannot do in it is not counted, and
// said.
TEST_F(CustomKernels, AStatedTimeHoldsWhatIsCounted) {
  Instruction* x = m_.Param(F32({1024, 1024}));
  Instruction* call = m_.Add(Opcode::kCustomCall, F32({1024, 1024}), {x});
  call->mutable_attrs().set_custom_call_target("tpu_custom_call");
  const Flops flops(int64_t{1} << 40);
  SetCustomCosts(m_.module(), {{"custom*", {flops, Flops(0), Bytes(8 * kMiB)}}});
  CustomCost time;
  time.time = Microseconds(100);
  SetCustomCosts(m_.module(), {{"custom*", time}});
  EXPECT_EQ(CustomCostOf(*call)->flops, flops);
  HoldToStatedTimes(m_.module(), target_);
  const CustomCost held = *CustomCostOf(*call);
  EXPECT_EQ(held.bytes, Bytes(8 * kMiB));  // 10.2 us at 819 GB/s
  EXPECT_LE(ComputeTime(MatrixFlops(held, target_), target_.chip().MxuPeak()), *held.time);
  EXPECT_GE(held.flops.value(), 0.99 * ToSeconds(*held.time) * target_.chip().MxuPeak().value());
  ASSERT_EQ(held.assumed.size(), 1U);
  EXPECT_THAT(held.assumed.front(), ::testing::HasSubstr("takes 100 us, as stated; its 1.1e+12"));
  EXPECT_THAT(TextsOf(CostAssumptions(m_.module()), Action::kAssumed),
              ::testing::ElementsAre(::testing::HasSubstr("takes 100 us")));
}

// A grid of 8 x 8 x 8 steps, each a product of 128^3; the result's block stays while the
// last axis goes on.
TEST_F(CustomKernels, PallasKernelsRunAsTheirGridSays) {
  Instruction* x = m_.Param(F32({1024, 1024}));
  Instruction* call = m_.Add(Opcode::kCustomCall, F32({1024, 1024}), {x});
  call->mutable_attrs().set_custom_call_target("tpu_custom_call");
  tpusim::KernelCost message;
  message.set_flops(int64_t{512} * (2 * 128 * 128 * 128 + 2048));
  message.set_transcendentals(512 * 1024);
  for (int axis = 0; axis < 3; ++axis) message.add_grid(8);
  for (const auto& [output, a, b] : {std::tuple(false, 0, 2), {false, 1, 2}, {true, 0, 1}}) {
    tpusim::KernelBlock& block = *message.add_blocks();
    block.set_bytes(32768);
    block.set_output(output);
    block.add_moves_with(a);
    block.add_moves_with(b);
  }
  tpusim::KernelProduct& product = *message.add_products();
  product.set_m(128);
  product.set_k(128);
  product.set_n(128);
  product.set_number_format("bf16");
  product.set_count(512);
  SetCustomCosts(m_.module(), {{"custom*", CostOf(message).value()}});
  const isa::Kernel kernel = Build(call);
  EXPECT_EQ(kernel.Steps(), 512);
  // Both operands move at every step, the result at every eighth: (1024 + 64) * 32 KiB.
  EXPECT_EQ(Moved(kernel), Bytes((1024 + 64) * 32768));
  EXPECT_EQ(kernel.block.mxu.m, 128);
  EXPECT_EQ(kernel.block.mxu.batch, 1);
  EXPECT_EQ(kernel.block.valu, 2);  // 2048 operations beside the product, a register of 1024 each
  EXPECT_EQ(kernel.block.eup, 1);

  product.set_number_format("bf17");
  EXPECT_THAT(Message(CostOf(message).status()),
              ::testing::HasSubstr("'bf17', which is no format"));
  product.set_number_format("bf16");
  message.mutable_blocks(0)->add_moves_with(3);
  EXPECT_THAT(Message(CostOf(message).status()), ::testing::HasSubstr("no axis of its grid"));
  message.set_grid(0, 0);
  EXPECT_THAT(Message(CostOf(message).status()), ::testing::HasSubstr("no steps, or too many"));
}

// Scores, softmax and the product with the values of one block of 512 x 512: on v5e the arrays
// take 512 cycles for each product, four products of a tile at a time. Registers of 1024 words:
// stores of 256 registers of scores, one a cycle, hide under the first product.
TEST_F(CustomKernels, StagesRunOneAfterAnother) {
  Instruction* x = m_.Param(F32({1024, 1024}));
  Instruction* call = m_.Add(Opcode::kCustomCall, F32({1024, 1024}), {x});
  call->mutable_attrs().set_custom_call_target("tpu_custom_call");
  tpusim::KernelCost message;
  message.add_grid(1);
  tpusim::KernelBlock& block = *message.add_blocks();
  block.set_bytes(4096);
  const auto add_product = [](int64_t k, int64_t n, auto* to) {
    tpusim::KernelProduct& product = *to->Add();
    product.set_m(512);
    product.set_k(k);
    product.set_n(n);
    product.set_number_format("bf16");
    product.set_count(1);
  };
  constexpr int64_t kProduct = 2LL * 512 * 512 * 128, kScores = 512 * 512;
  tpusim::KernelStage& scores = *message.add_stages();
  scores.set_flops(kProduct);
  scores.set_spilled_bytes(4 * kScores);
  add_product(128, 512, scores.mutable_products());
  tpusim::KernelStage& softmax = *message.add_stages();
  softmax.set_flops(4 * 4 * kScores);
  softmax.set_valu(16 * 256);
  tpusim::KernelStage& values = *message.add_stages();
  values.set_flops(kProduct);
  add_product(512, 128, values.mutable_products());
  message.set_flops(2 * kProduct + 16 * kScores);
  add_product(128, 512, message.mutable_products());
  add_product(512, 128, message.mutable_products());

  SetCustomCosts(m_.module(), {{"custom*", CostOf(message).value()}});
  const isa::Kernel staged = Build(call);
  configs::ChipParams chip = target_.chip();
  chip.mxu.efficiency = 1;
  EXPECT_EQ(staged.block.store, 256);
  EXPECT_EQ(staged.block.load, 256 + 1);  // and its block
  EXPECT_EQ(staged.block.valu, 16 * 256);
  // Side by side they would take the 1024 cycles of vector work or of products.
  const int64_t total = timing::TimeBlock(chip, staged.block).total.value();
  EXPECT_GE(total, 512 + 1024 + 512);
  EXPECT_LE(total, 2200 + 3 * chip.mxu.result_latency_cycles);
  // Of four chains that overlap, the waits of one are exposed.
  message.set_chain_flops(4);
  message.set_exposed_flops(1);
  SetCustomCost(call, CostOf(message).value());
  const int64_t latency = chip.vpu.latency_cycles;
  EXPECT_EQ(Build(call).block.latency.value() - latency,
            CeilDiv(staged.block.latency.value() - latency, 4));
  message.set_exposed_flops(5);
  EXPECT_THAT(Message(CostOf(message).status()), ::testing::HasSubstr("more waits are exposed"));
  message.set_exposed_flops(4);

  // What loops add comes to the stage of the same place.
  tpusim::KernelLoop& loop = *message.add_loops();
  loop.set_name("k/loop.0");
  loop.mutable_pass()->set_flops(scores.flops());
  *loop.mutable_pass()->add_stages() = scores;
  const auto three = [](const tpusim::KernelLoop&) -> std::optional<int64_t> { return 3; };
  const CustomCost looped = OpenCostOf(message, three).value().cost;
  ASSERT_EQ(looped.stages.size(), 3);
  EXPECT_EQ(looped.stages[0].flops, Flops(4 * kProduct));
  EXPECT_EQ(looped.stages[0].spilled, Bytes(4 * 4 * kScores));
  EXPECT_EQ(looped.stages[2].flops, Flops(kProduct));

  message.mutable_stages(1)->set_flops(1);
  EXPECT_THAT(Message(CostOf(message).status()), ::testing::HasSubstr("do not add up"));
  message.mutable_stages(0)->set_spilled_bytes(-1);
  EXPECT_THAT(Message(CostOf(message).status()), ::testing::HasSubstr("less than no work"));
}

// Products and vector work of a kernel whose grid has no parallel axis take twice as long on a device
// of two cores, and no longer on one of one.
TEST_F(CustomKernels, AKernelOfOneCoreLeavesTheOtherIdle) {
  Instruction* x = m_.Param(F32({1024, 1024}));
  Instruction* call = m_.Add(Opcode::kCustomCall, F32({1024, 1024}), {x});
  call->mutable_attrs().set_custom_call_target("tpu_custom_call");
  CustomCost cost{Flops(int64_t{2} * 64 * 1024 * 1024 * 1024), Flops(0), Bytes(8 * kMiB)};
  cost.products = {{1024, 1024, 1024, isa::NumberFormat::kBf16, 64}};
  const auto seconds = [&](const char* slice, bool one_core) {
    const configs::Config config = configs::LoadConfig(slice, {}).value();
    const target::Target target(config);
    cost.one_core = one_core;
    SetCustomCosts(m_.module(), {{"custom*", cost}});
    return ToSeconds(timing::KernelTime(target.chip(), *BuildKernel(*call, target)));
  };
  EXPECT_NEAR(seconds("v5p-1x1x1", true) / seconds("v5p-1x1x1", false), 2, 0.1);
  EXPECT_DOUBLE_EQ(seconds("v5e-1x1", true), seconds("v5e-1x1", false));
}

// 100 operations, a loop of 10 operations and 4 bytes a pass, and inside of it one of 3
// operations.
TEST_F(CustomKernels, LoopsOfKernelsAddTheirPasses) {
  Instruction* x = m_.Param(F32({1024, 1024}));
  Instruction* call = m_.Add(Opcode::kCustomCall, F32({1024, 1024}), {x});
  call->mutable_attrs().set_custom_call_target("tpu_custom_call");
  tpusim::KernelCost message;
  message.set_flops(100);
  tpusim::KernelLoop& outer = *message.add_loops();
  outer.set_name("k/loop.0");
  outer.set_source("k.py:3");
  outer.mutable_pass()->set_flops(10);
  outer.mutable_pass()->set_bytes_accessed(4);
  tpusim::KernelLoop& inner = *outer.mutable_pass()->add_loops();
  inner.set_name("k/loop.1");
  inner.mutable_pass()->set_flops(3);
  std::map<std::string, int64_t> counts = {{"k/loop.0", 7}};
  const auto trips = [&](const tpusim::KernelLoop& loop) -> std::optional<int64_t> {
    const auto count = counts.find(loop.name());
    if (count == counts.end()) return std::nullopt;
    return count->second;
  };
  SetUnpriced(call, OpenCostOf(message, trips).value());
  EXPECT_THAT(UnpricedReason(*call), ::testing::HasSubstr("how often k/loop.1 runs"));
  EXPECT_THAT(Message(CustomCostOf(*call).status()),
              ::testing::AllOf(::testing::HasSubstr("--trip-count k/loop.1=N"),
                               ::testing::HasSubstr("--kernel-cost custom-call")));
  counts["k/loop.1"] = 5;
  const OpenCost priced = OpenCostOf(message, trips).value();
  EXPECT_EQ(priced.unpriced, "");
  EXPECT_EQ(priced.cost.flops, Flops(100 + 7 * (10 + 5 * 3)));
  EXPECT_EQ(priced.cost.bytes, Bytes(7 * 4));
  // What is stated afterwards counts.
  SetCustomCosts(m_.module(), {{call->name(), priced.cost}});
  EXPECT_EQ(UnpricedReason(*call), "");
  EXPECT_EQ(CustomCostOf(*call).value().flops, Flops(275));

  counts["k/loop.0"] = std::numeric_limits<int64_t>::max();
  EXPECT_THAT(Message(OpenCostOf(message, trips).status()), ::testing::HasSubstr("impossible"));
}

TEST_F(CustomKernels, WorkloadsStateTimesOfCallsThatTakeSome) {
  tpusim::StatedKernelCost message;
  message.set_name("flash*");
  message.set_picoseconds(3'000'000);
  EXPECT_EQ(NamedCostOf(message)->cost.time, Microseconds(3));
  message.set_picoseconds(-1);
  EXPECT_THAT(Message(NamedCostOf(message).status()), ::testing::HasSubstr("less than no time"));
  message.set_picoseconds(0);
  message.set_flops(5);
  EXPECT_EQ(NamedCostOf(message)->cost.time, std::nullopt);
  EXPECT_EQ(NamedCostOf(message)->cost.flops, Flops(5));
}

TEST_F(CustomKernels, CallsOfTheHostAreFreeAndSaidToBe) {
  Instruction* call = m_.Add(Opcode::kCustomCall, F32({8}), {m_.Param(F32({8}))});
  call->mutable_attrs().set_custom_call_target("xla_ffi_python_cpu_callback");
  EXPECT_EQ(CustomCostOf(*call).value().flops, Flops(0));
  EXPECT_THAT(TextsOf(FreeHostCallbacks(m_.module()), Action::kAssumed),
              ::testing::ElementsAre(::testing::HasSubstr("waits for the host")));
  SetCustomCosts(m_.module(), {{"custom*", {Flops(5), Flops(0), Bytes(8)}}});
  EXPECT_EQ(CustomCostOf(*call).value().flops, Flops(5));
  EXPECT_THAT(FreeHostCallbacks(m_.module()), ::testing::IsEmpty());
}

TEST_F(CustomKernels, PallasKernelsBringTheirEstimate) {
  Instruction* x = m_.Param(F32({1024, 1024}));
  Instruction* call = m_.Add(Opcode::kCustomCall, F32({1024, 1024}), {x});
  call->mutable_attrs().set_custom_call_target("tpu_custom_call");
  call->mutable_attrs().set_backend_config(
      R"({"custom_call_config":{"body":"x","cost_estimate":{"flops":10,"transcendentals":"20",)"
      R"("bytes_accessed":30}}})");
  const CustomCost cost = CustomCostOf(*call).value();
  EXPECT_EQ(cost.flops, Flops(10));
  EXPECT_EQ(cost.transcendentals, Flops(20));
  EXPECT_EQ(cost.bytes, Bytes(30));
}

TEST_F(CustomKernels, AnEstimateThatSaysNothingIsNone) {
  Instruction* x = m_.Param(F32({1024, 1024}));
  Instruction* call = m_.Add(Opcode::kCustomCall, F32({1024, 1024}), {x});
  call->mutable_attrs().set_custom_call_target("tpu_custom_call");
  for (const std::string estimate :
       {R"({})", R"({"transcendentals":5})", R"({"flops":0,"bytes_accessed":"0"})",
        R"({"flops":"many","bytes_accessed":30})"}) {
    call->mutable_attrs().set_backend_config(R"({"custom_call_config":{"cost_estimate":)" +
                                             estimate + "}}");
    EXPECT_THAT(Message(CustomCostOf(*call).status()), ::testing::HasSubstr("--kernel-cost"))
        << estimate;
  }
}

}  // namespace
}  // namespace tpusim::kernels
