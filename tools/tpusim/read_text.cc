#include "tools/tpusim/read_text.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>
#include <sstream>

#include "configs/status_macros.h"

namespace tpusim::tools {

absl::StatusOr<std::string> ReadText(const std::string& path) {
  std::ostringstream text;
  if (path == "-") {
    text << std::cin.rdbuf();
    return text.str();
  }
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) return UserError(fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
  // An empty file sets the fail bit of the stream that it is written to, a folder the bad one.
  text << file.rdbuf();
  if (file.bad() || (text.fail() && file.peek() != std::ifstream::traits_type::eof())) {
    return UserError(fmt::format("{}: cannot be read", path));
  }
  return text.str();
}

}  // namespace tpusim::tools
