#include "tools/tpusim/outputs.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "configs/status_macros.h"

namespace tpusim::tools {
namespace {

absl::Status Unwritable(const OutputPath& output, int error) {
  return UserError(fmt::format("{}: cannot write '{}': {}{}", output.flag, output.path,
                               std::strerror(error),
                               error == ENOENT ? "; create its folder first" : ""));
}

// The file that would be replaced, links followed, whether it exists or not.
std::string RealPath(const std::string& path) {
  std::error_code error;
  const std::filesystem::path real = std::filesystem::weakly_canonical(path, error);
  return error ? path : real.string();
}

// The folder has to take a new file: results are renamed into their place. Only
// trying says so (permissions, read-only file systems, quotas).
absl::Status TryToCreate(const OutputPath& output) {
  struct stat info;
  if (::stat(output.path.c_str(), &info) == 0) {
    if (S_ISDIR(info.st_mode)) return Unwritable(output, EISDIR);
    if (!S_ISREG(info.st_mode)) {
      return ::access(output.path.c_str(), W_OK) == 0 ? absl::OkStatus()
                                                      : Unwritable(output, errno);
    }
  }
  if (output.path.back() == '/') return Unwritable(output, EISDIR);
  const std::string probe = fmt::format("{}.probe.{}", RealPath(output.path), ::getpid());
  const int fd = ::open(probe.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return Unwritable(output, errno);
  ::close(fd);
  ::unlink(probe.c_str());
  return absl::OkStatus();
}

bool IsDevice(const std::string& path) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode);
}

}  // namespace

absl::Status CheckOutputs(const std::vector<OutputPath>& outputs,
                          const std::vector<std::string>& inputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const OutputPath& output = outputs[i];
    if (output.path.empty()) continue;
    const std::string real = RealPath(output.path);
    for (const std::string& input : inputs) {
      if (RealPath(input) == real) {
        return UserError(fmt::format("{}: '{}' is the workload itself; choose another file",
                                     output.flag, output.path));
      }
    }
    for (size_t j = 0; j < i; ++j) {
      if (!outputs[j].path.empty() && RealPath(outputs[j].path) == real && !IsDevice(real)) {
        return UserError(fmt::format("{} and {} would both write '{}'; choose another file",
                                     outputs[j].flag, output.flag, output.path));
      }
    }
    RETURN_IF_ERROR(TryToCreate(output));
  }
  return absl::OkStatus();
}

}  // namespace tpusim::tools
