// Text files that users name.
#ifndef TPUSIM_TOOLS_TPUSIM_READ_TEXT_H_
#define TPUSIM_TOOLS_TPUSIM_READ_TEXT_H_

#include <string>

#include "absl/status/statusor.h"

namespace tpusim::tools {

// The whole file; of "-" stdin. Error: it cannot be read, with the reason.
absl::StatusOr<std::string> ReadText(const std::string& path);

}  // namespace tpusim::tools

#endif  // TPUSIM_TOOLS_TPUSIM_READ_TEXT_H_
