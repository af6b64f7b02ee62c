// Names that others give to slices: "v5litepod-8", "v5p-128", "v6e-8" of Cloud TPU, "tpu7x-128" of
// MaxText, "tpu7x:4x4x4" of libtpu, "ct6e-standard-4t" of machines.
//
// The number counts chips on v5e and v6e and of machines, TensorCores on v2 to v5p, and devices on
// v7x; of both a chip has two. Of the slices with so many chips it is the most compact one: the one
// whose longest axis is shortest, the first of such in the order of the chip's list.
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
// Returns a name with the chip's name as here, and a dash behind it: "tpu7x:4x4x4" is "v7x-4x4x4".
std::string Respelled(std::string_view name);

// Reads a name with a number, as `Respelled` or not; nothing if it does not have this form.
std::optional<CloudName> ParseCloudName(std::string_view name);

// Returns the slice with so many chips; "" if there is none.
std::string SliceOfChips(const std::vector<std::string>& slices, int64_t chips);

}  // namespace tpusim::configs

#endif  // TPUSIM_CONFIGS_CLOUD_NAMES_H_
