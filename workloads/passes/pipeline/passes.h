// The table of all passes, and the order in which they run by default.
#ifndef TPUSIM_WORKLOADS_PASSES_PIPELINE_PASSES_H_
#define TPUSIM_WORKLOADS_PASSES_PIPELINE_PASSES_H_

#include <string_view>
#include <vector>

#include "workloads/passes/pipeline/pass.h"

namespace tpusim::passes {

// Every pass once.
const std::vector<Pass>& AllPasses();
// Null: there is no such pass.
const Pass* FindPass(std::string_view name);

// As `--passes` takes it (pipeline_text.h).
extern const std::string_view kDefaultPipeline;

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_PIPELINE_PASSES_H_
