// Inflating files that are compressed.
#ifndef TPUSIM_WORKLOADS_HLO_IO_GZIP_H_
#define TPUSIM_WORKLOADS_HLO_IO_GZIP_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace tpusim::hlo {

bool IsGzip(const std::string& bytes);

// Errors: damaged or truncated data, or more than `max_bytes` of output.
absl::StatusOr<std::string> Gunzip(const std::string& bytes, int64_t max_bytes);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_IO_GZIP_H_
