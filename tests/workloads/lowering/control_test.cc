// Branches, placements, asynchronous copies: what the lowering makes of them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <variant>

#include "configs/config.h"
#include "tests/workloads/buffers/checked_plan.h"
#include "tests/workloads/hlo/hlo_test_util.h"
#include "tests/workloads/passes/fake_costs.h"
#include "workloads/cost/collective_decisions.h"
#include "workloads/cost/transfers.h"
#include "workloads/hlo/analysis/execution.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/lowering/lower.h"
#include "workloads/passes/annotate/annotate.h"
#include "workloads/passes/host/host.h"

namespace tpusim::lowering {
namespace {

using hlo::F32;
using hlo::Instruction;
using hlo::Opcode;
using hlo::PrimitiveType;
using hlo::S32;

Instruction* PartitionId(hlo::TestModule& m) {
  return m.Add(Opcode::kPartitionId, hlo::MakeScalarShape(PrimitiveType::kU32), {});
}

Instruction* Conditional(hlo::TestModule& m, Instruction* selector, Instruction* x) {
  std::vector<hlo::Computation*> branches;
  for (Opcode op : {Opcode::kSine, Opcode::kNegate}) {
    hlo::Computation* c = m.module().AddComputation("branch");
    Instruction* p = hlo::TestModule::Param(c, x->shape());
    hlo::TestModule::Add(c, op, x->shape(), {p});
    branches.push_back(c);
  }
  Instruction* conditional = m.Add(Opcode::kConditional, x->shape(), {selector, x, x});
  conditional->set_called(branches);
  return conditional;
}

isa::PodProgram LowerOn(hlo::TestModule& m, const std::string& slice, int64_t partitions) {
  const configs::Config config = configs::LoadConfig(slice, {}).value();
  const target::Target target(config);
  const buffers::MemoryPlan memory = buffers::CheckedPlan(m.module(), target);
  LoweringInput input;
  input.module = &m.module();
  input.memory = &memory;
  std::vector<int64_t> device_of_partition;
  for (int64_t p = 0; p < partitions; ++p) device_of_partition.push_back(p);
  cost::CollectiveDecisions decisions(config, device_of_partition);
  CollectiveLibrary collectives(decisions);
  input.collectives = &collectives;
  kernels::KernelLibrary kernels(target);
  input.kernels = &kernels;
  input.trips = [](const Instruction&) -> absl::StatusOr<int64_t> { return 1; };
  return Lower(input, target).value();
}

template <typename Kind>
std::vector<Kind> Find(const isa::Body& body) {
  std::vector<Kind> found;
  for (const isa::Instruction& i : body) {
    if (const auto* kind = std::get_if<Kind>(&i.kind)) found.push_back(*kind);
    const auto* start = std::get_if<isa::Start>(&i.kind);
    const auto* call = std::get_if<isa::Call>(&i.kind);
    if (start == nullptr && call == nullptr) continue;
    const std::vector<Kind> inside = Find<Kind>(start != nullptr ? *start->body : *call->body);
    found.insert(found.end(), inside.begin(), inside.end());
  }
  return found;
}

TEST(LowerTest, DevicesTakeTheirOwnBranch) {
  hlo::TestModule m;
  Instruction* x = m.Param(F32({1024, 1024}));
  Instruction* one = hlo::AddIntConstant(m.entry(), PrimitiveType::kU32, 1);
  Instruction* below = m.Add(Opcode::kCompare, hlo::Pred(), {PartitionId(m), one});
  below->mutable_attrs().set_comparison_direction("LT");
  Conditional(m, below, x);
  const isa::PodProgram program = LowerOn(m, "v5e-2x2", 4);
  // Partition 0 runs another program than the three others.
  ASSERT_EQ(program.programs.size(), 2U);
  EXPECT_EQ(Find<isa::Branch>(*program.programs[program.program_of_device[0]])[0].taken, 0);
  EXPECT_EQ(Find<isa::Branch>(*program.programs[program.program_of_device[3]])[0].taken, 1);
  EXPECT_TRUE(program.info.records.empty());
}

TEST(LowerTest, TheLongestBranchIsAssumedAndSaid) {
  hlo::TestModule m;
  Instruction* x = m.Param(F32({1024, 1024}));
  Conditional(m, m.Param(S32({})), x);
  const isa::PodProgram program = LowerOn(m, "v5e-1x1", 1);
  // The sine.
  EXPECT_EQ(Find<isa::Branch>(*program.programs[0])[0].taken, 0);
  EXPECT_THAT(TextsOf(program.info.records, Action::kAssumed),
              ::testing::ElementsAre(::testing::HasSubstr("takes branch 0, the longest")));
}

TEST(LowerTest, PlacementsCrossPcieOnlyWhenTheMemoryChanges) {
  hlo::TestModule m;
  Instruction* x = m.Param(F32({1024, 1024}));
  const auto place = [&](Instruction* value, const char* target) {
    Instruction* call = m.Add(Opcode::kCustomCall, F32({1024, 1024}), {value});
    call->mutable_attrs().set_custom_call_target(target);
    return call;
  };
  Instruction* there = place(x, "MoveToHost");
  Instruction* back = place(there, "MoveToDevice");
  place(back, "MoveToDevice");  // is there already
  const configs::Config config = configs::LoadConfig("v5e-1x1", {}).value();
  const target::Target target(config);
  passes::FakeCosts costs;
  ASSERT_TRUE(passes::AssignMemorySpaces(m.module(), {target, costs}).ok());
  EXPECT_TRUE(hlo::OnHost(there->shape()));
  EXPECT_FALSE(hlo::OnHost(back->shape()));
  const isa::PodProgram program = LowerOn(m, "v5e-1x1", 1);
  const std::vector<isa::HostDma> moves = Find<isa::HostDma>(*program.programs[0]);
  ASSERT_EQ(moves.size(), 2U);
  EXPECT_TRUE(moves[0].to_host);
  EXPECT_FALSE(moves[1].to_host);
  EXPECT_EQ(moves[0].bytes, Bytes(4 * kMiB));
}

TEST(LowerTest, HostArgumentsTakeNoHbm) {
  hlo::TestModule m;
  Instruction* x = m.Param(F32({1024, 1024}));
  Instruction* call = m.Add(Opcode::kCustomCall, F32({1024, 1024}), {x});
  call->mutable_attrs().set_custom_call_target("annotate_device_placement");
  hlo::SetFrontendAttribute(call, "_xla_buffer_placement", "device");
  const configs::Config config = configs::LoadConfig("v5e-1x1", {}).value();
  const target::Target target(config);
  passes::Statements stated;
  stated.argument_memories = {"pinned_host"};
  passes::FakeCosts costs;
  passes::PassContext context(target, costs);
  context.stated = &stated;
  EXPECT_TRUE(passes::StateArguments(m.module(), context).value());
  ASSERT_TRUE(passes::AssignMemorySpaces(m.module(), {target, costs}).ok());
  EXPECT_EQ(buffers::CheckedPlan(m.module(), target).PeakOf(hlo::kHbmSpace), Bytes(4 * kMiB));
  EXPECT_EQ(Find<isa::HostDma>(*LowerOn(m, "v5e-1x1", 1).programs[0]).size(), 1U);
  stated.argument_memories = {"device", "device"};
  EXPECT_FALSE(passes::StateArguments(m.module(), context).ok());
}

TEST(LowerTest, AsynchronousCopiesRunBesideTheMainStream) {
  hlo::TestModule m;
  Instruction* x = m.Param(F32({1024, 1024}));
  hlo::Shape vmem = F32({1024, 1024});
  vmem.layout.memory_space = hlo::kVmemSpace;
  Instruction* start = m.Add(
      Opcode::kCopyStart,
      hlo::MakeTupleShape({vmem, x->shape(), hlo::MakeScalarShape(PrimitiveType::kU32)}), {x});
  Instruction* work = m.Add(Opcode::kSine, F32({1024, 1024}), {x});
  Instruction* done = m.Add(Opcode::kCopyDone, vmem, {start});
  m.Add(Opcode::kAdd, F32({1024, 1024}), {work, done});
  const isa::PodProgram program = LowerOn(m, "v5e-1x1", 1);
  const std::vector<isa::Dma> copies = Find<isa::Dma>(*program.programs[0]);
  ASSERT_EQ(copies.size(), 1U);
  EXPECT_EQ(copies[0].to, isa::MemorySpace::kVmem);
  EXPECT_EQ(copies[0].bytes, Bytes(4 * kMiB));
  EXPECT_EQ(Find<isa::Done>(*program.programs[0]).size(), 1U);
}

TEST(LowerTest, EqualCollectivesShareRoutesAndNoFlags) {
  hlo::TestModule m;
  Instruction* x = m.Param(F32({1024, 1024}));
  const auto gather = [&](Instruction* value, const hlo::Shape& shape) {
    Instruction* i = m.Add(Opcode::kAllGather, shape, {value});
    hlo::SetReplicaGroups(i, {{0, 1}, {2, 3}});
    return i;
  };
  Instruction* first = gather(x, F32({2048, 1024}));
  Instruction* second = gather(x, F32({2048, 1024}));
  m.Add(Opcode::kAdd, F32({2048, 1024}), {first, second});
  const isa::PodProgram program = LowerOn(m, "v5e-2x2", 4);
  ASSERT_EQ(program.info.collectives.size(), 2U);
  EXPECT_EQ(program.info.collectives[0].expected, program.info.collectives[1].expected);
  const isa::Body& body = *program.programs[program.program_of_device[0]];
  const std::vector<isa::Rdma> sends = Find<isa::Rdma>(body);
  const std::vector<isa::Wait> waits = Find<isa::Wait>(body);
  ASSERT_EQ(sends.size(), 2U);
  EXPECT_EQ(sends[0].route, sends[1].route);
  EXPECT_EQ(sends[0].bytes, sends[1].bytes);
  // Half of the program's flags each, in the same places.
  const int32_t half = program.flags / 2;
  EXPECT_GT(half, 0);
  EXPECT_EQ(sends[0].arrival_flag + half, sends[1].arrival_flag);
  ASSERT_EQ(waits.size() % 2, 0U);
  for (size_t i = 0; i < waits.size() / 2; ++i) {
    EXPECT_EQ(waits[i].flag + half, waits[i + waits.size() / 2].flag);
  }
}

TEST(LowerTest, CallsRunTheirBody) {
  hlo::TestModule m;
  Instruction* x = m.Param(F32({1024, 1024}));
  hlo::Computation* c = m.module().AddComputation("callee");
  hlo::TestModule::Add(c, Opcode::kSine, x->shape(), {hlo::TestModule::Param(c, x->shape())});
  Instruction* call = m.Add(Opcode::kCall, x->shape(), {x});
  call->set_called({c});
  EXPECT_EQ(Find<isa::Kernel>(*LowerOn(m, "v5e-1x1", 1).programs[0]).size(), 1U);
}

TEST(LowerTest, TopKCallsNeedNoStatedCost) {
  hlo::TestModule m;
  Instruction* x = m.Param(F32({8, 1024}));
  Instruction* top =
      m.Add(Opcode::kCustomCall, hlo::MakeTupleShape({F32({8, 4}), S32({8, 4})}), {x});
  top->mutable_attrs().set_custom_call_target("TopK");
  const isa::PodProgram program = LowerOn(m, "v5e-1x1", 1);
  ASSERT_EQ(Find<isa::Kernel>(*program.programs[0]).size(), 1U);
  // One comparison per candidate.
  EXPECT_EQ(program.info.hardware_flops, Flops(8 * 1024));
}

TEST(ExecutionTest, StartsOfCollectivesAndCopies) {
  hlo::TestModule m;
  Instruction* x = m.Param(F32({64, 128}));
  hlo::Computation* inner = m.module().AddComputation("inner");
  Instruction* p = hlo::TestModule::Param(inner, x->shape());
  hlo::TestModule::Add(inner, Opcode::kReduceScatter, F32({16, 128}), {p});
  Instruction* start = m.Add(Opcode::kAsyncStart, hlo::MakeTupleShape({x->shape()}), {x});
  start->set_called({inner});
  EXPECT_EQ(hlo::ExecutionOf(*start).value(), hlo::Execution::kStart);
  EXPECT_EQ(cost::RequestOf(*start, {0, 1, 2, 3}).value().kind,
            collectives::CollectiveKind::kReduceScatter);
  hlo::Computation* slice = m.module().AddComputation("slice");
  hlo::TestModule::Add(slice, Opcode::kSlice, F32({16, 128}),
                       {hlo::TestModule::Param(slice, x->shape())});
  start->set_called({slice});
  EXPECT_EQ(hlo::ExecutionOf(*start).value(), hlo::Execution::kCopyStart);
  EXPECT_THAT(Message(hlo::ExecutionOf(*m.Add(Opcode::kSend, F32({}), {x, x})).status()),
              ::testing::HasSubstr("op 'send' is not supported"));
}

// Appends the names of operations that a stream begins, in order, also of those in between.
void AddBegun(const isa::PodProgram& program, const isa::Body& body, const isa::Iteration& in,
              std::vector<std::string>& begun) {
  for (const isa::Instruction& i : body) {
    const auto* label = std::get_if<isa::Label>(&i.kind);
    if (label != nullptr && label->begin) begun.push_back(program.info.ops[in.Op(label->op)].name);
    if (const auto* call = std::get_if<isa::Call>(&i.kind)) {
      AddBegun(program, *call->body, in, begun);
    } else if (const auto* branch = std::get_if<isa::Branch>(&i.kind)) {
      AddBegun(program, *branch->bodies[branch->taken], in, begun);
    } else if (const auto* loop = std::get_if<isa::Loop>(&i.kind)) {
      ASSERT_NE(loop->iterations, nullptr);
      for (int64_t n = 0; n < loop->count; ++n) {
        AddBegun(program, *loop->body, {loop->iterations.get(), n}, begun);
      }
    }
  }
}

// Each operation keeps its own name, also where computations are called.
// One element in the memory of the scalar core is an instruction of that core; in VMEM it is a kernel.
TEST(Execution, SingleElementsOfTheScalarCore) {
  const auto of = [](int64_t space, int64_t elements) {
    hlo::TestModule m;
    hlo::Shape shape = hlo::MakeShape(hlo::PrimitiveType::kU32, {elements});
    shape.layout.memory_space = space;
    Instruction* x = m.Param(shape);
    return hlo::ExecutionOf(*m.Add(Opcode::kAdd, shape, {x, x})).value();
  };
  EXPECT_EQ(of(6, 1), hlo::Execution::kScalar);
  EXPECT_EQ(of(2, 1), hlo::Execution::kScalar);
  EXPECT_EQ(of(hlo::kVmemSpace, 1), hlo::Execution::kKernel);
  EXPECT_EQ(of(6, 2), hlo::Execution::kKernel);
}

TEST(LowerTest, EqualLayersAreOneLoop) {
  constexpr int kLayers = 20;
  hlo::TestModule m;
  Instruction* x = m.Param(F32({1024, 1024}));
  Instruction* selector = m.Param(S32({}));
  std::vector<std::string> expected;
  for (int layer = 0; layer < kLayers; ++layer) {
    x = m.Add(Opcode::kNegate, x->shape(), {x});
    expected.push_back(x->name());
    x = m.Add(Opcode::kSine, x->shape(), {x});
    expected.push_back(x->name());
    x = Conditional(m, selector, x);
    expected.push_back(x->name());
    expected.push_back(x->called()[0]->root()->name());
  }
  // A result in whose buffer no array of a layer fits.
  x = m.Add(Opcode::kConvert, hlo::MakeShape(hlo::PrimitiveType::kBf16, {1024, 1024}), {x});
  expected.push_back(x->name());
  const isa::PodProgram program = LowerOn(m, "v5e-1x1", 1);
  std::vector<std::string> begun;
  AddBegun(program, *program.programs[0], {}, begun);
  EXPECT_EQ(begun, expected);
  const std::vector<isa::Loop> loops = Find<isa::Loop>(*program.programs[0]);
  ASSERT_EQ(loops.size(), 1);
  EXPECT_GE(loops[0].count, kLayers - 2);
}

}  // namespace
}  // namespace tpusim::lowering
