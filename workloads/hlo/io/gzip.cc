#include "workloads/hlo/io/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "configs/status_macros.h"
#include "fmt/format.h"

namespace tpusim::hlo {

bool IsGzip(const std::string& bytes) {
  return bytes.size() >= 2 && bytes[0] == '\x1f' && bytes[1] == '\x8b';
}

absl::StatusOr<std::string> Gunzip(const std::string& bytes, int64_t max_bytes) {
  z_stream stream = {};
  constexpr int kGzipOnly = 16;
  if (inflateInit2(&stream, MAX_WBITS + kGzipOnly) != Z_OK) {
    return absl::InternalError("zlib does not initialise");
  }
  const std::unique_ptr<z_stream, int (*)(z_stream*)> closer(&stream, inflateEnd);
  std::string out;
  std::vector<char> chunk(1 << 16);
  size_t position = 0;  // of the input that zlib has not been given
  while (true) {
    if (stream.avail_in == 0) {
      const size_t n = std::min<size_t>(bytes.size() - position, 1 << 30);
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data() + position));
      stream.avail_in = static_cast<uInt>(n);
      position += n;
    }
    stream.next_out = reinterpret_cast<Bytef*>(chunk.data());
    stream.avail_out = static_cast<uInt>(chunk.size());
    const int result = inflate(&stream, Z_NO_FLUSH);
    out.append(chunk.data(), chunk.size() - stream.avail_out);
    if (static_cast<int64_t>(out.size()) > max_bytes) {
      return UserError(fmt::format(
          "gzip data of {} bytes inflates to more than {} bytes, the limit for compressed files; "
          "if it is an HLO module all the same, unpack it (gunzip): files are read up to 2 GiB",
          bytes.size(), max_bytes));
    }
    if (result == Z_STREAM_END) {
      if (stream.avail_in == 0 && position == bytes.size()) return out;
      if (inflateReset(&stream) != Z_OK) return absl::InternalError("zlib does not reset");
      continue;  // another member, as `cat a.gz b.gz` makes
    }
    if (result == Z_BUF_ERROR || (result == Z_OK && stream.avail_in == 0 &&
                                  position == bytes.size() && stream.avail_out != 0)) {
      return UserError("gzip data is truncated");
    }
    if (result != Z_OK) {
      return UserError(fmt::format("gzip data is damaged ({})",
                                   stream.msg != nullptr ? stream.msg : "unknown reason"));
    }
  }
}

}  // namespace tpusim::hlo
