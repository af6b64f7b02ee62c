// The table of all passes, and the order in which they run by default.
//
// The room answers which passes there are; `AllPasses` is its entry point. Passes stand in rooms by
// topic that do not include each other. One room for all that concerns memory was tried and
// rejected: its passes came to look at one another. What several passes ask lies below them.
#ifndef TPUSIM_WORKLOADS_PASSES_PASSES_H_
#define TPUSIM_WORKLOADS_PASSES_PASSES_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "workloads/passes/pipeline/pass.h"
#include "workloads/passes/pipeline/pipeline.h"

namespace tpusim::passes {

// Every pass once, in the order in which they run by default.
const std::vector<Pass>& AllPasses();
// Null: there is no such pass.
const Pass* FindPass(std::string_view name);

// Returns the default pipeline as text for `--passes`: all passes but those that run ahead of any
// pipeline, and those of modules that the TPU compiler wrote.
std::string DefaultPipeline();
// Returns the pipeline of modules that the TPU compiler wrote (compiled/compiled.h).
std::string CompiledPipeline();

// Empty text is the default pipeline. Errors say at which character: an unknown pass
// (with the nearest), an unknown option or value, a group that does not end, a pass
// that would undo an order that an earlier one made.
absl::StatusOr<Pipeline> ParsePipeline(std::string_view text);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_PASSES_H_
