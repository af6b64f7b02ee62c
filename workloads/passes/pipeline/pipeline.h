// Runs passes one after the other, some of them until nothing changes any more.
//
//   simplify,fixpoint(layout,simplify),fusion{results=off},schedule
//
// is a pipeline as users write it and as the default is written (passes.h): passes
// with options, and groups that are repeated as a whole until a round changes nothing.
// `-fusion,-layout` is the default pipeline without these.
//
// A module may come scheduled, as a compiler leaves it. Passes of the phase kSchedule keep its
// order up to date; one of kOptimize that changes the module drops the order of all its
// computations, and `schedule` makes another.
//
// After every pass the module is verified, so that a pass that breaks it is named.
// What a pass says of itself is kept: how long it took, whether it changed anything,
// how many instructions there were before and after.
//
// The room answers how passes run, and what they may ask; `RunPipeline` is its entry point. Lines
// of text as explanations were tried and rejected: a record is data, which `--explain`, the report
// and the page print (configs/record.h).
#ifndef TPUSIM_WORKLOADS_PASSES_PIPELINE_PIPELINE_H_
#define TPUSIM_WORKLOADS_PASSES_PIPELINE_PIPELINE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/passes/pipeline/pass.h"

namespace tpusim::passes {

// A pass with its options, or a group.
struct PipelineStep {
  const Pass* pass = nullptr;  // null: a group
  OptionValues options;
  std::vector<PipelineStep> group;  // repeated until nothing changes
};
using Pipeline = std::vector<PipelineStep>;

// Returns the pipeline with the passes of kAnnotate that are not in it in front.
Pipeline WithAnnotations(Pipeline pipeline);
// The steps of one phase, in order.
Pipeline StepsOf(const Pipeline& pipeline, Phase phase);
// Returns how many steps come before the first with a pass that begins kernels; all if none does.
size_t StepsBeforeKernels(const Pipeline& pipeline);
// Error: one of `named`, as `option` has them, does not run.
absl::Status CheckNamed(std::string_view option, const std::vector<std::string>& named,
                        const Pipeline& pipeline);
// Returns the step as users write it: "fusion{results=off}", without options that have their usual
// value.
std::string ToString(const PipelineStep& step);
// Names of its passes, each once, in order.
std::vector<std::string> NamesOf(const Pipeline& pipeline);

// One run of one pass.
struct PassRun {
  std::string pass;
  bool changed = false;
  // The module was scheduled, and is not any more.
  bool dropped_order = false;
  double seconds = 0, verify_seconds = 0;
  int64_t before = 0, after = 0;  // instructions of the module
  // Its decisions, where they were asked for; its warnings, assumptions and the limits that it
  // reached.
  std::vector<Record> records;
};
// Its records, a line each, or "none".
std::string DecisionsOf(const PassRun& run);
// A table with a row per pass, runs added up.
std::string ToString(const std::vector<PassRun>& runs);
// The limits of effort that passes reached, a record per pass and limit, all runs of a pass added
// up.
std::vector<Record> LimitsReached(const std::vector<PassRun>& runs);

// Hears of every run of a pass, around it.
class PassWatch {
 public:
  virtual ~PassWatch() = default;
  // Before it, with the module as it is then. An error ends the pipeline.
  virtual absl::Status Begin(const PipelineStep& step, const hlo::Module& module) = 0;
  // After it, if the module verifies.
  virtual void End() {}
};

struct PipelineOptions {
  bool verify = true;
  // Passes that say why they decided as they did.
  std::vector<std::string> explain;
  // Hears of the module after every run of a pass.
  std::function<void(const PassRun& run, const hlo::Module& module)> after_pass;
  PassWatch* watch = nullptr;  // null: nobody
};

// Whether anything changed; appends to `runs`, but for passes of kAnnotate that had nothing to
// write and to say. Errors: of the passes; internal, with
// the pass named, if the module does not verify after one.
absl::StatusOr<bool> RunPipeline(const Pipeline& pipeline, hlo::Module& module,
                                 const PassContext& context, const PipelineOptions& options,
                                 std::vector<PassRun>& runs);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_PIPELINE_PIPELINE_H_
