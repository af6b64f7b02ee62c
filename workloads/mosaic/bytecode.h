// Reads MLIR's bytecode, the form in which a `tpu_custom_call` carries its kernel.
//
// A file is a magic number, a version, who wrote it, and sections: strings, names of dialects and
// operations, attributes and types (attribute_table.h), and the operations themselves, with their
// regions inside. JAX writes version 0, whose operations keep all they have in attributes; of later
// versions is read what a kernel may have. The format: mlir.llvm.org/docs/BytecodeFormat.
#ifndef TPUSIM_WORKLOADS_MOSAIC_BYTECODE_H_
#define TPUSIM_WORKLOADS_MOSAIC_BYTECODE_H_

#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "workloads/mosaic/module.h"

namespace tpusim::mosaic {

// Error: bytes of something else, or damaged ones.
absl::StatusOr<std::unique_ptr<Module>> ReadBytecode(std::string_view bytes);

}  // namespace tpusim::mosaic

#endif  // TPUSIM_WORKLOADS_MOSAIC_BYTECODE_H_
