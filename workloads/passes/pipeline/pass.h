// A pass of the compiler.
//
// A pass changes a module so that it computes the same and says whether it changed
// anything. It has a name, by which users choose it (`--passes`), and options, which
// have values of text with defaults. It knows of the machine and of costs what its
// context gives it. The table of all passes is in passes.h; pipeline.h runs them.
#ifndef TPUSIM_WORKLOADS_PASSES_PIPELINE_PASS_H_
#define TPUSIM_WORKLOADS_PASSES_PIPELINE_PASS_H_

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "configs/record.h"
#include "workloads/cost/cost_model.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/passes/pipeline/facts.h"
#include "workloads/passes/pipeline/statements.h"
#include "workloads/target/target.h"

namespace tpusim::passes {

inline const Statements kNothingStated;

// The knowledge that a pass may ask for. All of it must live as long as the pass runs.
struct PassContext {
  PassContext(const target::Target& machine, cost::CostModel& costs)
      : target(machine), cost(costs) {}

  const target::Target& target;
  cost::CostModel& cost;
  // Facts of the module that passes run on, shared by copies of the context. The pipeline forgets
  // them when a pass has changed something.
  std::shared_ptr<Facts> facts = std::make_shared<Facts>();
  // The statements that the passes of annotate/ write into the module.
  const Statements* stated = &kNothingStated;
  // The records in which a pass says what it did to what, and why (reasons.h). By default it keeps
  // nothing.
  Records records;
};

struct PassOption {
  std::string_view name;
  std::string_view fallback;  // its value where the user gives none
  std::string_view description;
  // Other values are errors; empty: any text.
  std::vector<std::string_view> values = {};
};

// The value of every option of a pass.
using OptionValues = std::map<std::string, std::string, std::less<>>;

// Passes of one phase may come in any order; after those that order the instructions
// of the program only such that keep an order up to date may follow. Those of kOptimize see
// no order, and where the module has one it is dropped with what they change (pipeline.h).
// Those of kAnnotate run in front of all, whether or not they are named; those of kRead are for
// modules that are ordered already, and keep the order.
enum class Phase { kAnnotate, kRead, kOptimize, kSchedule };

struct Pass {
  std::string_view name;
  std::string_view description;
  Phase phase = Phase::kOptimize;
  // Whether it changed anything. Errors: as the pass says.
  absl::StatusOr<bool> (*run)(hlo::Module& module, const PassContext& context,
                              const OptionValues& options) = nullptr;
  std::vector<PassOption> options = {};
  // The pass forgets itself what of the facts its changes make untrue.
  bool keeps_facts = false;
  // The pass marks where kernels begin: before it arrays have no layouts, and what is multiplied
  // and exchanged is known; it and those after it make kernels of that.
  bool begins_kernels = false;
};

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_PIPELINE_PASS_H_
