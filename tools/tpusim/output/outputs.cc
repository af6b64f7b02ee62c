#include "tools/tpusim/output/outputs.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "configs/chip_file.h"
#include "configs/status_macros.h"
#include "sim/results/report/atomic_file.h"

namespace tpusim::tools {
namespace {

absl::Status Unwritable(const OutputPath& output, std::string_view why) {
  return UserError(fmt::format("{}: cannot write '{}': {}", output.flag, output.path, why));
}

// The file that a path leads to, by whatever name.
struct File {
  std::string path;  // resolved
  bool exists = false;
  struct stat info = {};

  explicit File(const std::string& name) : path(results::ResolvedPath(name)) {
    exists = ::stat(name.c_str(), &info) == 0;
  }
  bool IsDevice() const { return exists && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode); }
  // Two names of one file: spelt in two ways, by way of a link, or hard links.
  bool Is(const File& other) const {
    if (path == other.path) return true;
    return exists && other.exists && info.st_dev == other.info.st_dev &&
           info.st_ino == other.info.st_ino;
  }
};

// The folder has to take a new file: results are renamed into their place. Only
// trying says so (permissions, read-only file systems, quotas).
absl::Status TryToCreate(const OutputPath& output, const File& file) {
  if (file.IsDevice()) {
    return ::access(output.path.c_str(), W_OK) == 0 ? absl::OkStatus()
                                                    : Unwritable(output, std::strerror(errno));
  }
  if (output.path.back() == '/' || (file.exists && S_ISDIR(file.info.st_mode))) {
    return Unwritable(output, std::strerror(EISDIR));
  }
  const auto probe = results::TemporaryFile::Beside(file.path);
  return probe.ok() ? absl::OkStatus() : Unwritable(output, Message(probe.status()));
}

}  // namespace

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

std::vector<InputPath> InputsOf(const std::string& workload, const std::string& config) {
  std::vector<InputPath> inputs = {{"workload", workload}};
  if (configs::IsJsonPath(config)) inputs.push_back({"configuration", config});
  return inputs;
}

absl::Status CheckOutputs(const std::vector<OutputPath>& outputs,
                          const std::vector<InputPath>& inputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const OutputPath& output = outputs[i];
    if (output.path.empty()) continue;
    if (output.path == results::kStdout) {
      for (size_t j = 0; j < i; ++j) {
        if (outputs[j].path != output.path) continue;
        return UserError(fmt::format("{} and {} would both write to stdout; choose a file for one",
                                     outputs[j].flag, output.flag));
      }
      continue;
    }
    const File file(output.path);
    for (const InputPath& input : inputs) {
      if (!file.IsDevice() && file.Is(File(input.path))) {
        return UserError(fmt::format("{}: '{}' is the {} itself; choose another file", output.flag,
                                     output.path, input.what));
      }
    }
    for (size_t j = 0; j < i; ++j) {
      if (!outputs[j].path.empty() && outputs[j].path != results::kStdout && !file.IsDevice() &&
          file.Is(File(outputs[j].path))) {
        return UserError(fmt::format("{} and {} would both write '{}'; choose another file",
                                     outputs[j].flag, output.flag, output.path));
      }
    }
    RETURN_IF_ERROR(TryToCreate(output, file));
  }
  return absl::OkStatus();
}

absl::Status CheckOutputFolder(const std::string& flag, const std::string& path) {
  namespace fs = std::filesystem;
  const std::string target = results::ResolvedPath(path);
  std::error_code error;
  if (fs::exists(target, error) && !fs::is_directory(target, error)) {
    return Unwritable({flag, path}, "it is a file, and a folder is written");
  }
  if (fs::is_directory(target, error) && !fs::is_empty(target, error)) {
    return Unwritable({flag, path}, "the folder is not empty; choose a new one, or empty it");
  }
  const auto probe = results::TemporaryFile::Beside(target);
  return probe.ok() ? absl::OkStatus() : Unwritable({flag, path}, Message(probe.status()));
}

absl::Status WriteFolder(const std::string& flag, const std::string& path,
                         const std::vector<FolderFile>& files) {
  namespace fs = std::filesystem;
  RETURN_IF_ERROR(CheckOutputFolder(flag, path));
  const std::string target = results::ResolvedPath(path);
  const std::string made = fmt::format("{}.tmp.{}", target, ::getpid());
  const auto write = [&]() -> absl::Status {
    if (::mkdir(made.c_str(), 0777) != 0) return Unwritable({flag, path}, std::strerror(errno));
    for (const FolderFile& file : files) {
      RETURN_IF_ERROR(results::WriteFileAtomically(made + "/" + file.name, file.bytes));
    }
    // Also over an empty folder.
    if (::rename(made.c_str(), target.c_str()) == 0) return absl::OkStatus();
    return Unwritable({flag, path}, std::strerror(errno));
  };
  absl::Status written = write();
  std::error_code error;
  if (!written.ok()) fs::remove_all(made, error);
  return written;
}

}  // namespace tpusim::tools
