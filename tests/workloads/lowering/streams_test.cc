#include "workloads/lowering/streams.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

#include "tests/workloads/passes/small_module.h"
#include "workloads/passes/collectives/collectives.h"

namespace tpusim::lowering {
namespace {

using hlo::Instruction;
using hlo::Opcode;
using passes::SmallModule;

// Starts and dones by turns, in the order given: positive numbers start, negative end.
std::vector<int32_t> StreamsOfPermutes(int permutes, const std::vector<int>& order) {
  SmallModule m;
  Instruction* x = m.Parameter({256, 512});
  std::vector<Instruction*> results;
  for (int n = 0; n < permutes; ++n) {
    results.push_back(m.Add(Opcode::kCollectivePermute, {256, 512}, {x}));
  }
  m.Return(results);
  EXPECT_TRUE(passes::MakeCollectivesAsync(m.module(), m.context()).ok());
  std::vector<Instruction*> schedule = {x};
  Instruction* result = m.entry().root();
  for (const int n : order) {
    Instruction* done = result->operand(std::abs(n) - 1);
    schedule.push_back(n > 0 ? done->operand(0) : done);
  }
  schedule.push_back(result);
  m.entry().set_schedule(schedule);
  const auto streams = AssignStreams(m.module(), 0);
  std::vector<int32_t> found;
  for (int n = 0; n < permutes; ++n) {
    found.push_back(streams.at(result->operand(n)->operand(0)).index);
  }
  return found;
}

TEST(AssignStreams, WhatIsInFlightTogetherHasStreamsOfItsOwn) {
  EXPECT_EQ(StreamsOfPermutes(3, {1, 2, 3, -1, -2, -3}), (std::vector<int32_t>{0, 1, 2}));
  // The third starts when the first is over.
  EXPECT_EQ(StreamsOfPermutes(3, {1, 2, -1, 3, -2, -3}), (std::vector<int32_t>{0, 1, 0}));
  EXPECT_EQ(StreamsOfPermutes(3, {1, -1, 2, -2, 3, -3}), (std::vector<int32_t>{0, 0, 0}));
}

// v7x has two SparseCores per device: a third off-loaded all-reduce waits behind one.
TEST(AssignStreams, OffLoadedCollectivesShareTheSparseCores) {
  SmallModule m("v7x-2x2x1");
  std::vector<Instruction*> results;
  for (int n = 0; n < 3; ++n) {
    results.push_back(m.Add(Opcode::kAllReduce, {128, 128}, {m.Parameter({128, 128})}));
  }
  m.Return(results);
  ASSERT_TRUE(passes::MakeCollectivesAsync(m.module(), m.context()).ok());
  std::vector<Instruction*> schedule;
  for (Instruction* i : m.entry().PostOrder()) {
    if (i->opcode() == Opcode::kParameter) schedule.push_back(i);
  }
  Instruction* result = m.entry().root();
  for (Instruction* done : result->operands()) schedule.push_back(done->operand(0));
  for (Instruction* done : result->operands()) schedule.push_back(done);
  schedule.push_back(result);
  m.entry().set_schedule(schedule);
  const auto streams = AssignStreams(m.module(), 2);
  std::vector<int32_t> found;
  for (Instruction* done : result->operands()) {
    const isa::StreamId stream = streams.at(done->operand(0));
    EXPECT_EQ(stream.kind, isa::StreamKind::kSparseCore);
    found.push_back(stream.index);
  }
  EXPECT_EQ(found, (std::vector<int32_t>{0, 1, 0}));
}

}  // namespace
}  // namespace tpusim::lowering
