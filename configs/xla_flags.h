// Flags of the TPU compiler that change what it makes of a program, as rules of the chip.
//
// Training scripts set them in LIBTPU_INIT_ARGS or XLA_FLAGS; published step times were measured
// with some. A flag that stands in a row of configs/compilers sets that value; a few set figures of
// the chip: VMEM of a kernel, what the SparseCores do. All others are accepted, and named in one
// warning: they change nothing. Flags that a program was exported with are defaults of its runs.
#ifndef TPUSIM_CONFIGS_XLA_FLAGS_H_
#define TPUSIM_CONFIGS_XLA_FLAGS_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "configs/chip.h"

namespace tpusim::configs {

inline constexpr std::string_view kXlaFlagsOption = "--xla-flags";

// Flags of a text such as "--xla_enable_async_all_gather=true
// --xla_tpu_scoped_vmem_limit_kib=98304" applied to `chip`. Returns warnings: of values outside of
// their range, which are taken as the end of the range, and of flags that change nothing. An error
// names a text that is no flag, or a value that the flag does not take. Each starts with `origin`.
absl::StatusOr<std::vector<std::string>> ApplyXlaFlags(std::string_view text, ChipParams& chip,
                                                       std::string_view origin = kXlaFlagsOption);

}  // namespace tpusim::configs

#endif  // TPUSIM_CONFIGS_XLA_FLAGS_H_
