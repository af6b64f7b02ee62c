#include "workloads/hlo/io/dump_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "configs/status_macros.h"

namespace tpusim::hlo {
namespace {

namespace fs = std::filesystem;

// Endings of a module's files, the best first. XLA writes the same stage as text, as a proto, or as
// both; for CPUs and GPUs the last stage has another name (cpu_after_optimizations).
constexpr std::string_view kEndings[] = {
    ".after_optimizations.txt", ".after_optimizations.hlo.pb", ".before_optimizations.txt",
    ".before_optimizations.hlo.pb"};

// Returns the files with an ending, the largest first.
std::vector<std::pair<uintmax_t, std::string>> FilesThatEnd(const std::string& folder,
                                                            std::string_view ending) {
  std::vector<std::pair<uintmax_t, std::string>> found;
  std::error_code error;
  for (fs::directory_iterator file(folder, error), end; !error && file != end;
       file.increment(error)) {
    const std::string path = file->path().string();
    if (!path.ends_with(ending)) continue;
    const uintmax_t bytes = file->file_size(error);
    if (!error) found.emplace_back(bytes, path);
  }
  std::ranges::sort(found, [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  return found;
}

}  // namespace

absl::StatusOr<std::string> ModuleOfDump(const std::string& folder) {
  constexpr size_t kNamed = 5;  // number: names in a message
  for (const std::string_view ending : kEndings) {
    const auto files = FilesThatEnd(folder, ending);
    if (files.empty()) continue;
    if (files.size() == 1) return files.front().second;
    std::string names;
    for (size_t n = 0; n < std::min(files.size(), kNamed); ++n) {
      names += fmt::format("{}{}", n == 0 ? "" : ", ", files[n].second);
    }
    if (files.size() > kNamed) names += fmt::format(" and {} more", files.size() - kNamed);
    return UserError(
        fmt::format("{}: has {} modules, give one of them: {}", folder, files.size(), names));
  }
  return UserError(fmt::format("{}: is a directory without a module of --xla_dump_to "
                               "(*.before_optimizations.txt)",
                               folder));
}

}  // namespace tpusim::hlo
