// Tests of passes on HLO text in C++: for what a text with CHECK lines does not say (the folders
// beside this file), such as a plan of what comes out or a program of hundreds of operations.
//
//   PassText test("HloModule m ENTRY e { ... }");
//   EXPECT_TRUE(test.Run("fusion").value());      // it changed something
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

class PassText {
 public:
  // The text must parse. Costs are nothing unless stated.
  explicit PassText(std::string_view text, const std::string& config = "v5e-2x2");

  // Passes as `--passes` names them, verified; whether anything changed.
  absl::StatusOr<bool> Run(std::string_view passes);

  hlo::Module& module() { return *module_; }
  FakeCosts& costs() { return costs_; }

 private:
  configs::Config config_;
  target::Target target_;
  FakeCosts costs_;
  std::unique_ptr<hlo::Module> module_;
};

}  // namespace tpusim::passes

#endif  // TPUSIM_TESTS_WORKLOADS_PASSES_PASS_TEST_H_
