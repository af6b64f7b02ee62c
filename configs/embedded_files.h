// Files of the tree that the binary holds as text, as they were at build time, so that an installed
// tpusim needs no data folder. configs/CMakeLists.txt lists them.
#ifndef TPUSIM_CONFIGS_EMBEDDED_FILES_H_
#define TPUSIM_CONFIGS_EMBEDDED_FILES_H_

#include <string>
#include <string_view>
#include <vector>

namespace tpusim::configs {

struct EmbeddedFile {
  std::string_view name;  // "v5e" of v5e.json, "libtpu-0.0.42"
  std::string_view text;
};

// Returns the files of a folder ("chips", "compilers", "collectives", "instructions", "schemas",
// "tpusim", "validation") in the order of their names.
const std::vector<EmbeddedFile>& EmbeddedFiles(std::string_view folder);

inline std::vector<std::string> EmbeddedNames(std::string_view folder) {
  std::vector<std::string> names;
  for (const EmbeddedFile& file : EmbeddedFiles(folder)) names.emplace_back(file.name);
  return names;
}

}  // namespace tpusim::configs

#endif  // TPUSIM_CONFIGS_EMBEDDED_FILES_H_
