// After all passes, what kernels take for granted of layouts holds in every example: operands
// and results of elementwise operations lie alike, and whatever only passes an array on has it
// in one layout at both ends.

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "configs/config.h"
#include "workloads/compiler/session.h"
#include "workloads/hlo/ir/opcode.h"

namespace tpusim::compiler {
namespace {

using hlo::Instruction;
using hlo::Opcode;
using hlo::Shape;

bool SameOrders(const Shape& a, const Shape& b) {
  const std::vector<const Shape*> left = hlo::Leaves(a), right = hlo::Leaves(b);
  for (size_t n = 0; n < left.size(); ++n) {
    if (left[n]->IsArray() && !hlo::SameOrder(*left[n], *right[n])) return false;
  }
  return left.size() == right.size();
}

// Returns what is wrong with an instruction's layouts, or "".
std::string Problem(const Instruction& i) {
  const auto alike = [&](const Shape& a, const Shape& b) {
    return SameOrders(a, b) ? "" : i.name() + ": " + a.ToString(true) + " and " + b.ToString(true);
  };
  std::string found;
  if (hlo::IsElementwise(i.opcode())) {
    for (const Instruction* o : i.operands()) {
      if (o->shape().dims == i.shape().dims) found += alike(o->shape(), i.shape());
    }
  }
  switch (i.opcode()) {
    case Opcode::kTuple:
      for (size_t n = 0; n < i.operands().size(); ++n) {
        found += alike(i.operand(n)->shape(), i.shape().tuple[n]);
      }
      break;
    case Opcode::kGetTupleElement:
      found += alike(i.operand(0)->shape().tuple[static_cast<size_t>(i.attrs().tuple_index())],
                     i.shape());
      break;
    case Opcode::kWhile:
      found += alike(i.operand(0)->shape(), i.shape());
      found += alike(i.called()[0]->root()->shape(), i.shape());
      for (const hlo::Computation* c : i.called()) {
        found += alike(c->parameters()[0]->shape(), i.shape());
      }
      break;
    case Opcode::kConditional:
      for (size_t b = 0; b < i.called().size(); ++b) {
        found += alike(i.called()[b]->parameters()[0]->shape(), i.operand(b + 1)->shape());
        found += alike(i.called()[b]->root()->shape(), i.shape());
      }
      break;
    case Opcode::kFusion: {
      const std::vector<Instruction*> parameters = i.called()[0]->parameters();
      for (size_t n = 0; n < parameters.size(); ++n) {
        found += alike(parameters[n]->shape(), i.operand(n)->shape());
      }
      found += alike(i.called()[0]->root()->shape(), i.shape());
      break;
    }
    default:
      break;
  }
  return found;
}

TEST(LayoutConsistency, HoldsInEveryExample) {
  const std::filesystem::path folder =
      std::filesystem::path(TPUSIM_SOURCE_DIR) / "workloads" / "examples";
  int compiled = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (!entry.path().string().ends_with(".pb.gz")) continue;
    auto imported = hlo::ImportFile(entry.path().string());
    ASSERT_TRUE(imported.ok()) << entry.path();
    const auto config = configs::LoadConfig("v5e-16x16", {});
    ASSERT_TRUE(config.ok());
    CompileOptions options;
    const auto result = Compile(std::move(*imported), *config, options, Stage::kOptimized);
    ASSERT_TRUE(result.ok()) << entry.path() << result.status().message();
    ++compiled;
    for (const hlo::Computation* computation : result->module->computations()) {
      for (const Instruction* i : computation->instructions()) {
        const std::string problem = Problem(*i);
        EXPECT_EQ(problem, "") << entry.path();
        if (!problem.empty()) break;
      }
    }
  }
  EXPECT_GT(compiled, 50);
}

}  // namespace
}  // namespace tpusim::compiler
