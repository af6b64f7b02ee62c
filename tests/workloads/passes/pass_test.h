// Tests of passes as HLO text in, HLO text out.
//
//   PassText test("HloModule m ENTRY e { ... }");
//   EXPECT_TRUE(test.Run("fuse").value());      // it changed something
//   EXPECT_EQ(test.text(), Canonical("HloModule m ENTRY e { ... }"));
//
// Texts are compared in a canonical form, in which names, the order of what may come in
// any order and metadata play no part. What a test does not spell out it looks for with
// HasLines.
#ifndef TPUSIM_TESTS_WORKLOADS_PASSES_PASS_TEST_H_
#define TPUSIM_TESTS_WORKLOADS_PASSES_PASS_TEST_H_

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "configs/config.h"
#include "tests/workloads/passes/fake_costs.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/target/target.h"

namespace tpusim::passes {

// Instructions in the order of a walk from the roots (scheduled ones in their order),
// named after their opcode and place, without metadata.
std::string Canonical(const hlo::Module& module);
// Of text that parses, or the test ends.
std::string Canonical(std::string_view text);

class PassText {
 public:
  // The text must parse. Costs are nothing unless stated.
  explicit PassText(std::string_view text, const std::string& config = "v5e-2x2");

  // Passes as `--passes` names them, verified; whether anything changed.
  absl::StatusOr<bool> Run(std::string_view passes);

  hlo::Module& module() { return *module_; }
  FakeCosts& costs() { return costs_; }
  std::string text() const { return Canonical(*module_); }

 private:
  configs::Config config_;
  target::Target target_;
  FakeCosts costs_;
  std::unique_ptr<hlo::Module> module_;
};

// Whether the lines of `wanted` occur in `text` in this order, other lines between them;
// in each, * stands for anything.
bool HasLines(std::string_view text, std::string_view wanted);

}  // namespace tpusim::passes

#endif  // TPUSIM_TESTS_WORKLOADS_PASSES_PASS_TEST_H_
