#include "sim/results/atomic_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "configs/status_macros.h"

namespace tpusim::results {
namespace {

absl::Status Failed(const std::string& path, int error) {
  std::string advice;
  if (error == ENOENT) advice = "; create its folder first";
  return UserError(fmt::format("cannot write '{}': {}{}", path, std::strerror(error), advice));
}

// Zero or the errno of what failed.
int WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return 0;
}

int WriteAndClose(int fd, std::string_view bytes) {
  int error = WriteAll(fd, bytes);
  if (::close(fd) != 0 && error == 0) error = errno;
  return error;
}

}  // namespace

absl::Status WriteFileAtomically(const std::string& path, std::string_view bytes) {
  struct stat info;
  const bool exists = ::stat(path.c_str(), &info) == 0;
  if (exists && !S_ISREG(info.st_mode)) {
    const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd < 0) return Failed(path, errno);
    const int error = WriteAndClose(fd, bytes);
    return error == 0 ? absl::OkStatus() : Failed(path, error);
  }

  std::string target = path;
  if (exists) {
    std::error_code ignored;
    const std::filesystem::path real = std::filesystem::canonical(path, ignored);
    if (!ignored) target = real.string();
  }
  const std::string temporary = fmt::format("{}.tmp.{}", target, ::getpid());
  // Never through a link that someone put there; 0666 is narrowed by the umask.
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) return Failed(path, errno);
  int error = WriteAndClose(fd, bytes);
  if (error == 0 && ::rename(temporary.c_str(), target.c_str()) != 0) error = errno;
  if (error == 0) return absl::OkStatus();
  ::unlink(temporary.c_str());
  return Failed(path, error);
}

}  // namespace tpusim::results
