// The fuzzers' work without libFuzzer: every file as it is, then the same
// mutations of it in every run.
//
//   fuzz_replay STAGE [--mutations N] [--keep FILE] FILE_OR_FOLDER...
//
// FILE holds the input that runs, and after a crash the one that caused it.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "mutate.h"
#include "stages.h"

namespace {

// Each mutation of a larger one takes longer than it teaches.
constexpr uintmax_t kMaxBytes = 20000;

std::vector<std::string> Files(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    if (!std::filesystem::is_directory(path)) {
      files.push_back(path);
      continue;
    }
    for (const auto& entry : std::filesystem::directory_iterator(path)) {
      if (entry.is_regular_file()) files.push_back(entry.path().string());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

int main(int argc, char** argv) {
  using tpusim::fuzz::Stage;
  constexpr std::array<const Stage*, 4> kStages = {&tpusim::fuzz::kImport, &tpusim::fuzz::kText,
                                                   &tpusim::fuzz::kKernel,
                                                   &tpusim::fuzz::kCompiler};
  std::vector<std::string> paths(argv + 1, argv + argc);
  const auto stage = std::find_if(kStages.begin(), kStages.end(), [&](const Stage* s) {
    return !paths.empty() && s->name == paths[0];
  });
  if (stage == kStages.end()) {
    fmt::print(stderr, "usage: fuzz_replay import|text|kernel|compiler [--mutations N] [--keep FILE] "
               "PATH...\n");
    return 2;
  }
  paths.erase(paths.begin());
  int64_t mutations = 0;
  std::string kept;
  while (paths.size() >= 2 && (paths[0] == "--mutations" || paths[0] == "--keep")) {
    if (paths[0] == "--mutations") mutations = std::atoll(paths[1].c_str());
    if (paths[0] == "--keep") kept = paths[1];
    paths.erase(paths.begin(), paths.begin() + 2);
  }
  int64_t inputs = 0, accepted = 0;
  const auto run = [&](const std::string& bytes) {
    ++inputs;
    if (!kept.empty()) std::ofstream(kept, std::ios::binary) << bytes;
    accepted += (*stage)->exercise(bytes) ? 1 : 0;
  };
  for (const std::string& file : Files(paths)) {
    std::ifstream in(file, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    run(bytes);
    if (bytes.empty() || bytes.size() > kMaxBytes) continue;
    // Seeded by its name, so that a new file does not change the others' mutations.
    uint64_t seed = 1469598103934665603u;  // FNV-1a
    for (char c : std::filesystem::path(file).filename().string()) {
      seed = (seed ^ static_cast<unsigned char>(c)) * 1099511628211u;
    }
    tpusim::fuzz::Random random(seed);
    for (int64_t n = 0; n < mutations; ++n) {
      run((*stage)->mutate(bytes, &random));
    }
  }
  fmt::print("{} inputs, {} accepted\n", inputs, accepted);
  // Something must get past the checks, something must not.
  return accepted > 0 && (mutations == 0 || accepted < inputs) ? 0 : 1;
}
