// Suggestions for misspelt names.
#ifndef TPUSIM_CONFIGS_NAMES_H_
#define TPUSIM_CONFIGS_NAMES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tpusim::configs {

// Levenshtein distance: insertions, deletions and substitutions cost 1.
int64_t EditDistance(std::string_view a, std::string_view b);

// The candidate most like `name`. A candidate that ends in `name` after a dot
// ("hbm.bytes" of "chip.hbm.bytes") or has it as a component ("hbm") comes
// before any edit distance; ties go to the earlier candidate. Empty when there are no candidates.
std::string Nearest(std::string_view name, const std::vector<std::string>& candidates);

// Returns the path most like `path`, such as "chip.hbm.bytes". Parts are compared in order, so that
// a part that is left out or misspelt does not lead to another group.
std::string NearestPath(std::string_view path, const std::vector<std::string>& candidates);

// NearestPath as a message goes on: "the nearest is chip.hbm.bytes"; where that is only a guess
// also what else is beside it: " (chip.hbm has bytes, bytes_per_second, ...)".
std::string NearestPathText(std::string_view path, const std::vector<std::string>& candidates);

std::string Join(const std::vector<std::string>& parts, std::string_view separator);

}  // namespace tpusim::configs

#endif  // TPUSIM_CONFIGS_NAMES_H_
