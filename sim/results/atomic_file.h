// Output files that are either whole or absent.
//
// A result that is cut short looks like a result: half a trace loads without
// any error. So everything is written beside its destination first and renamed
// over it at the end; a failed or interrupted run leaves what was there before.
#ifndef TPUSIM_SIM_RESULTS_ATOMIC_FILE_H_
#define TPUSIM_SIM_RESULTS_ATOMIC_FILE_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace tpusim::results {

// Links are followed; a destination that is no regular file (/dev/stdout, a
// pipe) is written in place. Errors name the path and the reason.
absl::Status WriteFileAtomically(const std::string& path, std::string_view bytes);

}  // namespace tpusim::results

#endif  // TPUSIM_SIM_RESULTS_ATOMIC_FILE_H_
