// Layout: which reshapes and transposes move data and which only rename it.
//
// Arrays lie in tiles of sublanes x lanes over their last two dimensions
// (row-major otherwise). A reshape that leaves those tiles where they are is a
// bitcast and costs nothing; any other is a relayout, a kernel of its own or part
// of one.
#ifndef TPUSIM_WORKLOADS_PASSES_LAYOUT_H_
#define TPUSIM_WORKLOADS_PASSES_LAYOUT_H_

#include "absl/status/status.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/target/target.h"

namespace tpusim::passes {

// Makes every array row-major, whatever order the file gave it, and turns free reshapes
// and transposes into bitcasts.
absl::Status AssignLayouts(hlo::Module& module, const target::Target& target);

// Does an array of this shape lie in memory exactly as one of that shape?
bool SameTiling(const hlo::Shape& from, const hlo::Shape& to, const target::Target& target);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_LAYOUT_H_
