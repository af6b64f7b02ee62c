// Names that Cloud TPU gives to slices: "v5litepod-8", "v5p-128", "v6e-8", "v4-32".
//
// The number counts chips on v5e and v6e, TensorCores on v2 to v5p, of which a chip has two. Of the
// slices with so many chips it is the most compact one: the one whose longest axis is shortest, the
// first of such in the order of the chip's list.
#ifndef TPUSIM_CONFIGS_CLOUD_NAMES_H_
#define TPUSIM_CONFIGS_CLOUD_NAMES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tpusim::configs {

struct CloudName {
  std::string chip;   // as here, "v5e"
  int64_t chips = 0;  // 0: the number is none that such a slice can have
};
// Reads a name; nothing if it does not have this form.
std::optional<CloudName> ParseCloudName(std::string_view name);

// Returns the slice with so many chips; "" if there is none.
std::string SliceOfChips(const std::vector<std::string>& slices, int64_t chips);

}  // namespace tpusim::configs

#endif  // TPUSIM_CONFIGS_CLOUD_NAMES_H_
