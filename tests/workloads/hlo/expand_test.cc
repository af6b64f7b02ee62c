// Fusions, asynchronous pairs and bitcasts written as plain operations.
#include <gtest/gtest.h>

#include "tests/workloads/hlo/hlo_test_util.h"
#include "workloads/hlo/transforms/expand_bitcasts.h"
#include "workloads/hlo/transforms/join_async.h"
#include "workloads/hlo/transforms/split_async.h"
#include "workloads/hlo/transforms/unfuse.h"

namespace tpusim::hlo {
namespace {

Shape Pair() { return MakeTupleShape({F32({4}), F32({4})}); }

Instruction* Element(TestModule& m, Instruction* tuple, int64_t index) {
  Instruction* element = m.Add(Opcode::kGetTupleElement, tuple->shape().tuple[index], {tuple});
  element->mutable_attrs().set_tuple_index(index);
  return element;
}

// {tanh(p), exp(tanh(p))}; the exp is a fusion inside the fusion.
TEST(Unfuse, SeveralOutputsAndFusionsInFusions) {
  TestModule m;
  Computation* nested = m.module().AddComputation("nested");
  TestModule::Add(nested, Opcode::kExponential, F32({4}), {TestModule::Param(nested, F32({4}))});
  Computation* fused = m.module().AddComputation("fused");
  Instruction* tanh =
      TestModule::Add(fused, Opcode::kTanh, F32({4}), {TestModule::Param(fused, F32({4}))});
  Instruction* exp = TestModule::Add(fused, Opcode::kFusion, F32({4}), {tanh});
  exp->set_called({nested});
  TestModule::Add(fused, Opcode::kTuple, Pair(), {tanh, exp});
  Instruction* fusion = m.Add(Opcode::kFusion, Pair(), {m.Param(F32({4}))});
  fusion->set_called({fused});
  Instruction* first = Element(m, fusion, 0);
  Instruction* second = Element(m, fusion, 1);
  const Instruction* sum = m.Add(Opcode::kAdd, F32({4}), {second, first});

  EXPECT_EQ(Unfuse(m.module()), 2);
  ASSERT_TRUE(Verify(m.module()).ok());
  EXPECT_EQ(m.module().computations().size(), 1u);
  EXPECT_EQ(m.entry()->size(), 4u);  // parameter, tanh, exp, add
  EXPECT_EQ(sum->operand(0)->opcode(), Opcode::kExponential);
  EXPECT_EQ(sum->operand(1)->opcode(), Opcode::kTanh);
  EXPECT_EQ(sum->operand(0)->operand(0), sum->operand(1));
}

TEST(Unfuse, ControlEdgesStay) {
  TestModule m;
  Computation* fused = m.module().AddComputation("fused");
  TestModule::Add(fused, Opcode::kTanh, F32({4}), {TestModule::Param(fused, F32({4}))});
  Instruction* p = m.Param(F32({4}));
  Instruction* before = m.Add(Opcode::kExponential, F32({4}), {p});
  Instruction* fusion = m.Add(Opcode::kFusion, F32({4}), {p});
  fusion->set_called({fused});
  fusion->AddControlPredecessor(before);
  const Instruction* sum = m.Add(Opcode::kAdd, F32({4}), {fusion, before});
  EXPECT_EQ(Unfuse(m.module()), 1);
  EXPECT_THAT(sum->operand(0)->control_predecessors(), testing::ElementsAre(before));
}

TEST(JoinAsync, CopiesAndWrappedOperations) {
  TestModule m;
  Computation* wrapped = m.module().AddComputation("wrapped");
  TestModule::Add(wrapped, Opcode::kTanh, F32({4}), {TestModule::Param(wrapped, F32({4}))});
  Instruction* p = m.Param(F32({4}));
  Instruction* start = m.Add(Opcode::kAsyncStart,
                             MakeTupleShape({MakeTupleShape({F32({4})}), F32({4}), S32({})}), {p});
  start->set_called({wrapped});
  Instruction* update = m.Add(Opcode::kAsyncUpdate, start->shape(), {start});
  Instruction* done = m.Add(Opcode::kAsyncDone, F32({4}), {update});
  Instruction* copy = m.Add(Opcode::kCopyStart, MakeTupleShape({F32({4}), F32({4}), S32({})}), {p});
  Instruction* copied = m.Add(Opcode::kCopyDone, F32({4}), {copy});
  const Instruction* sum = m.Add(Opcode::kAdd, F32({4}), {done, copied});

  EXPECT_EQ(JoinAsync(m.module()), 2);
  ASSERT_TRUE(Verify(m.module()).ok());
  EXPECT_EQ(m.entry()->size(), 4u);  // parameter, tanh, copy, add
  EXPECT_EQ(sum->operand(0)->opcode(), Opcode::kTanh);
  EXPECT_EQ(sum->operand(1)->opcode(), Opcode::kCopy);
}

// Operations that run beside the TensorCore, or on another thread, stay in two halves.
TEST(JoinAsync, OnlyComputeOfTheTensorCore) {
  for (const auto& [opcode, thread, joined] :
       {std::tuple(Opcode::kCustomCall, "", 1), std::tuple(Opcode::kCustomCall, "main", 1),
        std::tuple(Opcode::kTanh, "", 1), std::tuple(Opcode::kCustomCall, "sparsecore", 0),
        std::tuple(Opcode::kCopy, "", 0)}) {
    TestModule m;
    Instruction* whole = m.Add(opcode, F32({4}), {m.Param(F32({4}))});
    WrapInAsync(whole)->mutable_attrs().set_async_execution_thread(thread);
    EXPECT_EQ(JoinAsyncCompute(m.module()), joined) << OpcodeName(opcode) << " " << thread;
    ASSERT_TRUE(Verify(m.module()).ok());
    EXPECT_EQ(m.entry()->root()->opcode(), joined > 0 ? opcode : Opcode::kAsyncDone);
  }
}

// [2,3,4] in the order {1,2,0}: 2 slices of 4 columns of 3. As [2,12] those stand in rows.
TEST(ExpandBitcasts, ElementsInTheOrderOfLayouts) {
  TestModule m;
  Shape from = F32({2, 3, 4});
  from.layout.minor_to_major = {1, 2, 0};
  Instruction* p = m.Param(from);
  m.Add(Opcode::kBitcast, F32({2, 12}), {p});
  ExpandBitcasts(m.module());
  const Instruction* reshape = m.entry()->root();
  ASSERT_EQ(reshape->opcode(), Opcode::kReshape);
  const Instruction* transpose = reshape->operand(0);
  ASSERT_EQ(transpose->opcode(), Opcode::kTranspose);
  EXPECT_THAT(transpose->shape().dims, testing::ElementsAre(2, 4, 3));
  EXPECT_THAT(Dimensions(*transpose), testing::ElementsAre(0, 2, 1));
}

}  // namespace
}  // namespace tpusim::hlo
