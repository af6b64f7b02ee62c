// Folders of modules that XLA writes (--xla_dump_to).
#ifndef TPUSIM_WORKLOADS_HLO_IO_DUMP_FOLDER_H_
#define TPUSIM_WORKLOADS_HLO_IO_DUMP_FOLDER_H_

#include <string>

#include "absl/status/statusor.h"

namespace tpusim::hlo {

// Returns the file of the only module in a folder: as the TPU compiler left it, else as it was
// before XLA optimized it. Error: the folder has no such file, or several modules; the message names
// them, those of most bytes first.
absl::StatusOr<std::string> ModuleOfDump(const std::string& folder);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_IO_DUMP_FOLDER_H_
