// Modules with named values, as text.
#ifndef TPUSIM_TESTS_WORKLOADS_REMAT_REMAT_TESTING_H_
#define TPUSIM_TESTS_WORKLOADS_REMAT_REMAT_TESTING_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "absl/strings/str_replace.h"
#include "configs/status_macros.h"
#include "workloads/hlo/analysis/verify.h"
#include "workloads/hlo/io/printer.h"
#include "workloads/hlo/io/text_parser.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/remat/policies.h"

namespace tpusim::remat {

// NAMED(n) and AGAIN(n) stand for what names a value n: in the forward pass, and where JAX says
// that it is computed again.
inline std::unique_ptr<hlo::Module> Parsed(const std::string& text) {
  const std::string name =
      "exponent_bits=8, mantissa_bits=23, frontend_attributes={tpusim.checkpoint_name=\"n\"}";
  auto parsed = hlo::ParseHloText(absl::StrReplaceAll(
      text, {{"NAMED", name},
             {"AGAIN", name + ", metadata={op_name=\"f/rematted_computation/name\"}"},
             {"BACKWARD", "metadata={op_name=\"f/transpose(jvp())/mul\"}"}}));
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  if (!parsed.ok()) return nullptr;
  EXPECT_EQ(hlo::Verify(*parsed->module), absl::OkStatus());
  return std::move(parsed->module);
}

inline absl::Status State(const std::string& policy, hlo::Module& module) {
  const auto parsed = ParseStatedPolicy(policy);
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  const absl::Status stated = StatePolicies({*parsed}, module);
  if (stated.ok()) {
    EXPECT_EQ(hlo::Verify(module), absl::OkStatus());
  }
  return stated;
}

inline int64_t CountOf(const hlo::Module& module, hlo::Opcode opcode) {
  int64_t count = 0;
  for (const hlo::Computation* computation : module.computations()) {
    for (const hlo::Instruction* i : computation->instructions()) count += i->opcode() == opcode;
  }
  return count;
}

}  // namespace tpusim::remat

#endif  // TPUSIM_TESTS_WORKLOADS_REMAT_REMAT_TESTING_H_
