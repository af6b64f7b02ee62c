// Which tpusim this is.
#ifndef TPUSIM_TOOLS_TPUSIM_FIND_BUILD_ID_H_
#define TPUSIM_TOOLS_TPUSIM_FIND_BUILD_ID_H_

#include <string>

#include "absl/status/statusor.h"

namespace tpusim::tools {

// A digest of the program that runs, as it lies on the disk: two builds have one only if they are
// the same, bytes for bytes. A version says less: nobody counts it up with every change. Error: it
// cannot be read.
absl::StatusOr<std::string> BuildId();

}  // namespace tpusim::tools

#endif  // TPUSIM_TOOLS_TPUSIM_FIND_BUILD_ID_H_
