// Unrolled layers in programs: where they are, and what things are called in them.
#include "models/isa/iterations.h"

#include <gtest/gtest.h>

#include <bit>

#include "tests/models/isa/small_programs.h"

namespace tpusim::isa {
namespace {

constexpr int32_t kBefore = 3;  // operations before the layers

Block Work(int64_t valu) {
  Block block;
  block.valu = valu;
  return block;
}

// So many layers after some other work. Each starts a transfer and waits for that of the
// layer before; the wait is an operation of its own. All layers share one flag.
PodProgram Layers(int32_t layers, int32_t other = -1) {
  PodProgram program;
  Body body;
  for (int32_t op = 0; op < kBefore; ++op) {
    body.push_back({Label{op, true}});
    body.push_back({Work(op)});
    body.push_back({Label{op, false}});
  }
  program.info.ops.resize(kBefore + static_cast<size_t>(2 * layers));
  for (int32_t layer = 0; layer < layers; ++layer) {
    const int32_t op = kBefore + 2 * layer;
    Rdma rdma;
    rdma.bytes = Bytes(layer == other ? 7 : 5);
    rdma.arrival_flag = 1;
    body.push_back({Start{{StreamKind::kCollective, 0}, layer, Share({{rdma}, {Wait{1}}})}});
    body.push_back({Label{op, true}});
    for (int n = 0; n < 20; ++n) body.push_back({Work(10 + n)});
    body.push_back({Label{op, false}});
    body.push_back({Label{op + 1, true}});
    if (layer > 0) body.push_back({Done{layer - 1}});
    for (int n = 0; n < 20; ++n) body.push_back({Work(40 + n)});
    body.push_back({Label{op + 1, false}});
  }
  program.programs = {Share(std::move(body))};
  program.program_of_device = {0, 0};
  program.routes.resize(1);
  program.flags = 2;
  program.tokens = layers;
  return program;
}

TEST(Iterations, AreFoundAndNamesFollowEachOther) {
  const PodProgram program = Layers(12);
  const std::vector<Iterations> found = FindIterations(program);
  ASSERT_EQ(found.size(), 1);
  const Iterations& layers = found[0];
  // The first layer waits for nothing and is none of them.
  ASSERT_GE(layers.first_ops().size(), 10);
  for (size_t i = 1; i < layers.first_ops().size(); ++i) {
    EXPECT_EQ(layers.first_ops()[i], layers.first_ops()[i - 1] + 2);
  }
  const Iterations::InProgram* in = layers.Find(program.programs[0].get());
  ASSERT_NE(in, nullptr);
  EXPECT_EQ(in->length, 1 + 2 * 22 + 1);
  EXPECT_LE(in->end, program.programs[0]->size());
  EXPECT_GT(in->end + in->length, program.programs[0]->size());
  // Every layer has its own operations and tokens; all layers use the same flag.
  EXPECT_EQ(layers.Later(kBefore + 4, 3), kBefore + 10);
  EXPECT_EQ(layers.Later(1, 3), 1);
  const Iterations::Name third = layers.Of(NameKind::kToken, 3);
  const Iterations::Name fifth = layers.Of(NameKind::kToken, 5);
  EXPECT_EQ(third.which, fifth.which);
  EXPECT_EQ(fifth.iteration - third.iteration, 2);
  EXPECT_EQ(layers.In(NameKind::kToken, {third.which, third.iteration + 4}), 7);
  EXPECT_EQ(layers.Of(NameKind::kFlag, 1).iteration, -1);
  EXPECT_EQ(layers.Of(NameKind::kFlag, 1).which, 1);
}

TEST(Iterations, EndWhereSomethingElseIsDone) {
  EXPECT_TRUE(FindIterations(Layers(3)).empty());
  EXPECT_TRUE(FindIterations(Layers(9, /*other=*/4)).empty());
  const std::vector<Iterations> found = FindIterations(Layers(30, /*other=*/15));
  ASSERT_EQ(found.size(), 2);
  EXPECT_LT(found[0].first_ops().back(), kBefore + 2 * 15);
  EXPECT_GT(found[1].first_ops().front(), kBefore + 2 * 14);
}

TEST(Iterations, ProgramsThatCallTheirLayersHaveThemToo) {
  PodProgram program = Layers(12);
  const Body& whole = *program.programs[0];
  const auto middle = whole.begin() + static_cast<ptrdiff_t>(whole.size() / 2);
  // The other device does something before.
  program.programs.push_back(Share(
      {{Work(99)}, {Call{Share({whole.begin(), middle})}}, {Call{Share({middle, whole.end()})}}}));
  program.program_of_device[1] = 1;
  const std::vector<Iterations> found = FindIterations(program);
  ASSERT_EQ(found.size(), 1);
  const Iterations::InProgram* first = found[0].Find(program.programs[0].get());
  const Iterations::InProgram* second = found[0].Find(program.programs[1].get());
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(second->begin, first->begin + 1);
  EXPECT_EQ(second->length, first->length);
  EXPECT_EQ(second->end, first->end + 1);
}

// A token that comes back after a few layers has no place in their order.
TEST(Iterations, NamesThatComeBackAreNoIterations) {
  PodProgram program = Layers(24);
  Body body = *program.programs[0];
  for (Instruction& i : body) {
    if (auto* start = std::get_if<Start>(&i.kind)) start->token %= 3;
    if (auto* done = std::get_if<Done>(&i.kind)) done->token %= 3;
  }
  program.programs[0] = Share(std::move(body));
  EXPECT_TRUE(FindIterations(program).empty());
}

}  // namespace
}  // namespace tpusim::isa
