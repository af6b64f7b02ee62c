#include "tools/tpusim/find/build_id.h"

#include "configs/digest.h"
#include "configs/status_macros.h"
#include "tools/tpusim/output/outputs.h"

namespace tpusim::tools {

absl::StatusOr<std::string> BuildId() {
  ASSIGN_OR_RETURN(const std::string program, ReadText("/proc/self/exe"));
  return configs::Digest().Add(program).Text();
}

}  // namespace tpusim::tools
