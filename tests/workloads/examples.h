// The committed exports of the example programs.
#ifndef TPUSIM_TESTS_WORKLOADS_EXAMPLES_H_
#define TPUSIM_TESTS_WORKLOADS_EXAMPLES_H_

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

namespace tpusim::workloads {

inline std::vector<std::string> Examples() {
  std::vector<std::string> files;
  const std::string folder = std::string(TPUSIM_SOURCE_DIR) + "/workloads/examples";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().string().ends_with(".pb.gz")) files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace tpusim::workloads

#endif  // TPUSIM_TESTS_WORKLOADS_EXAMPLES_H_
