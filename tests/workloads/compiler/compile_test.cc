// The work of the compiler by the size of the program, in counts: seconds depend on the machine
// (benchmarks/decoder_train.py exports programs to measure them with).
#include "workloads/compiler/session.h"

#include <gtest/gtest.h>

#include <map>
#include <utility>

#include "configs/config.h"
#include "tests/workloads/hlo/hlo_test_util.h"

namespace tpusim::compiler {
namespace {

using hlo::F32;
using hlo::Instruction;
using hlo::Opcode;

// Layers of x' = tanh(x w) and w' = w + x', each with weights of its own, donated.
absl::StatusOr<CompileResult> CompileLayers(int layers) {
  auto module = std::make_unique<hlo::Module>("layers");
  hlo::Computation* entry = module->AddComputation("main");
  module->set_entry(entry);
  const hlo::Shape square = F32({512, 512});
  Instruction* x = entry->AddParameter(0, square, "x");
  std::vector<Instruction*> results;
  std::vector<hlo::Shape> shapes;
  for (int n = 0; n < layers; ++n) {
    Instruction* w = entry->AddParameter(n + 1, square, "w");
    Instruction* dot = entry->Add(Opcode::kDot, square, {x, w});
    hlo::DotDims dims;
    dims.lhs_contracting = {1};
    dims.rhs_contracting = {0};
    hlo::SetDotDims(dot, dims);
    x = entry->Add(Opcode::kTanh, square, {dot});
    results.push_back(entry->Add(Opcode::kAdd, square, {w, x}));
    module->mutable_fields().mutable_buffer_donor()->add_entries()->set_parameter_number(n + 1);
  }
  results.push_back(x);
  for (const Instruction* result : results) shapes.push_back(result->shape());
  entry->set_root(entry->Add(Opcode::kTuple, hlo::MakeTupleShape(shapes), results));

  hlo::ImportedWorkload imported;
  imported.module = std::move(module);
  imported.num_partitions = 1;
  ASSIGN_OR_RETURN(const configs::Config config, configs::LoadConfig("v5e-1x1", {}));
  return Compile(std::move(imported), config, {});
}

TEST(CompileTest, KernelsOfEqualLayersAreSearchedOnce) {
  // The product with its tanh, and the update: each is searched for with its operands in HBM, and
  // for every set of them that a plan of memory-space assignment has in VMEM. There are few such
  // sets, because layers are alike but for the first, whose input is an argument, and the last.
  const std::map<int, int64_t> searches = {{1, 6}, {4, 10}, {40, 8}};
  for (const auto& [layers, expected] : searches) {
    const auto result = CompileLayers(layers);
    ASSERT_TRUE(result.ok()) << Message(result.status());
    EXPECT_EQ(result->kernel_searches, expected) << layers << " layers";
    EXPECT_EQ(result->program.programs.size(), 1U);
    // x, x', and per layer one array that is updated in place.
    EXPECT_LE(result->program.info.peak.hbm(), Bytes((layers + 3) * int64_t{1024} * 1024));
  }
}

}  // namespace
}  // namespace tpusim::compiler
