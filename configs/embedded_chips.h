// The files of configs/chips and configs/compilers as they were at build time.
#ifndef TPUSIM_CONFIGS_EMBEDDED_CHIPS_H_
#define TPUSIM_CONFIGS_EMBEDDED_CHIPS_H_

#include <string_view>
#include <vector>

namespace tpusim::configs {

struct EmbeddedChip {
  std::string_view name;  // "v5e"
  std::string_view json;
};

// In the order of names.
const std::vector<EmbeddedChip>& EmbeddedChips();
const std::vector<EmbeddedChip>& EmbeddedCompilers();  // "libtpu-0.0.42"
// Their choices of collective algorithms (workloads/collectives/choice_table.h).
const std::vector<EmbeddedChip>& EmbeddedChoices();  // "libtpu-0.0.42-collectives"

}  // namespace tpusim::configs

#endif  // TPUSIM_CONFIGS_EMBEDDED_CHIPS_H_
