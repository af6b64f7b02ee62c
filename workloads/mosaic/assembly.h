// Reads MLIR's assembly text, the form in which the TPU compiler adds kernels of its own.
//
// Plain attention becomes `online-softmax`, ragged products `ragged-dot`, each with a grid and
// windows like a Pallas kernel. An operation has a line; the last type of the line is that of its
// result, but where an arrow or `to` names another. Only operations whose syntax is more than
// operands, attributes and types have a rule of their own: functions, loops, comparisons,
// constants, reductions.
#ifndef TPUSIM_WORKLOADS_MOSAIC_ASSEMBLY_H_
#define TPUSIM_WORKLOADS_MOSAIC_ASSEMBLY_H_

#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "workloads/mosaic/module.h"

namespace tpusim::mosaic {

// Returns whether the body of a kernel is text; otherwise it is bytecode.
bool IsAssembly(std::string_view body);

// Reads a kernel in either form. Error: the line that is not understood, or damaged bytes.
absl::StatusOr<std::unique_ptr<Module>> ReadBody(std::string_view body);

}  // namespace tpusim::mosaic

#endif  // TPUSIM_WORKLOADS_MOSAIC_ASSEMBLY_H_
