// texts/propagate_*.hlo have more of what propagation does.
#include "workloads/sharding/propagation/propagate.h"

#include <ctime>

#include "tests/workloads/sharding/sharding_testing.h"

namespace tpusim::sharding {
namespace {

using hlo::F32;
using hlo::Instruction;
using hlo::Opcode;

// i from the left operand and j from the right one both want x. XLA's default
// gives it to the first; asked to avoid conflicts first, the dot waits, and the
// sum with z settles it.
TEST(Propagate, BasicFirstIsAnOption) {
  for (const bool basic_first : {false, true}) {
    ShardedTestModule m;
    Instruction* a = m.Argument(F32({16, 16}), "[{\"x\"}, {}]");
    Instruction* b = m.Argument(F32({16, 16}), "[{}, {\"x\"}]");
    Instruction* ones = m.Add(Opcode::kIota, F32({16, 16}), {});
    Instruction* dot = m.Dot(m.Add(Opcode::kAdd, F32({16, 16}), {a, ones}), b, {16, 16});
    Instruction* wide = m.Argument(F32({16, 16, 8}), "[{}, {\"x\"}, {}]");
    Instruction* zero = m.Add(Opcode::kConstant, F32({}), {});
    Instruction* z = m.Add(Opcode::kReduce, F32({16, 16}), {wide, zero});
    z->mutable_attrs().add_dimensions(2);
    z->set_called({m.Reducer(Opcode::kAdd)});
    m.Add(Opcode::kAdd, F32({16, 16}), {dot, z});
    PropagationOptions options;
    options.basic_first = basic_first;
    m.Shard(options);
    EXPECT_EQ(m.Of(dot), basic_first ? "[{}, {x}]" : "[{x}, {}]");
  }
}

// A chain of 50,000 ops: no recursion, and ten times as many ops take about ten
// times as long (a quadratic pass would take a hundred times).
TEST(Propagate, TimeIsLinearInDepth) {
  const auto seconds = [](int length) {
    ShardedTestModule m;
    Instruction* v = m.Argument(F32({16, 16}), "[{\"x\"}, {\"y\"}]");
    for (int i = 0; i < length; ++i) v = m.Add(Opcode::kSine, F32({16, 16}), {v});
    const std::clock_t start = std::clock();  // of this process: other work does not count
    m.Shard();
    const double spent = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    EXPECT_EQ(m.OfRoot(), "[{x}, {y}]");
    return spent;
  };
  const double small = seconds(5000);
  EXPECT_LT(seconds(50000), 40 * small + 0.5);
}

}  // namespace
}  // namespace tpusim::sharding
