#include "workloads/hlo/rules/cost.h"

#include "tests/workloads/hlo/cost_text.h"
#include "tests/workloads/hlo/text_cases.h"

namespace tpusim::hlo {
namespace {

// Operators that opcode_coverage_test.cc has no more to ask of are not in the file.
TEST(Cost, OfRoots) {
  for (const TextCase& one : TextCases("hlo/data/costs.hlo")) {
    const std::unique_ptr<Module> module = ParsedCase(one);
    ASSERT_NE(module, nullptr);
    EXPECT_EQ(CostText(*module->entry()->root()), one.expected) << one.at;
  }
}

TEST(Cost, NoRule) {
  TestModule t;
  Instruction* call = t.Add(Opcode::kCustomCall, F32({4}), {t.Param(F32({4}))});
  call->mutable_attrs().set_custom_call_target("tpu_custom_call");
  call->mutable_attrs().mutable_metadata()->set_source_file("k.py");
  call->mutable_attrs().mutable_metadata()->set_source_line(7);
  EXPECT_EQ(CostOf(*call).status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(CostText(*call),
            "custom-call (k.py:7): custom call to 'tpu_custom_call' has no cost; give it with "
            "--kernel-cost custom-call=FLOPS,BYTES");
  EXPECT_EQ(CostText(*t.Add(Opcode::kScan, F32({4}), {call})), "scan: no cost rule for scan");
}

TEST(Cost, EveryExportedInstructionHasARule) {
  for (const std::string& file : CommittedExports()) {
    const auto module = Load(file);
    for (const Computation* c : module->computations()) {
      for (const Instruction* i : c->instructions()) {
        if (i->opcode() == Opcode::kCustomCall || !i->called().empty()) continue;
        EXPECT_TRUE(CostOf(*i).ok()) << file << ": " << CostText(*i);
      }
    }
  }
}

}  // namespace
}  // namespace tpusim::hlo
