// Limits of combining all-reduces; all else is in collectives/*.hlo.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/workloads/passes/pass_test.h"
#include "workloads/hlo/ir/opcode.h"

namespace tpusim::passes {
namespace {

using hlo::Instruction;
using hlo::Opcode;

constexpr char kPlus[] = R"(HloModule m
plus {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
)";
constexpr char kOfAll[] = "replica_groups={{0,1,2,3}}, to_apply=plus";

// Operands of every all-reduce, as they come in the program.
std::vector<size_t> Sizes(PassText& test) {
  std::vector<size_t> sizes;
  for (const Instruction* i : test.module().entry()->PostOrder()) {
    if (i->opcode() == Opcode::kAllReduce) sizes.push_back(i->operands().size());
  }
  return sizes;
}

// 256 arrays are enough.
TEST(AllReduces, NotTooManyAtOnce) {
  std::string text = fmt::format("{}ENTRY e {{\n", kPlus), names, shapes;
  for (int n = 0; n < 300; ++n) {
    text += fmt::format(
        "  x{0} = f32[1024] parameter({0})\n  a{0} = f32[1024] all-reduce(x{0}), {1}\n", n, kOfAll);
    names += fmt::format("{}a{}", n > 0 ? ", " : "", n);
    shapes += n > 0 ? ", f32[1024]" : "f32[1024]";
  }
  PassText test(text + fmt::format("  ROOT r = ({}) tuple({})\n}}", shapes, names));
  EXPECT_TRUE(test.Run("combine-all-reduces").value());
  EXPECT_EQ(Sizes(test), (std::vector<size_t>{256, 44}));
}

}  // namespace
}  // namespace tpusim::passes
