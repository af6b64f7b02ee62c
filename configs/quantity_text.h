// Numbers as people write them: "1.5GHz", "90GB/s", "32MiB", "250ns", "2x".
//
// A number is in the unit that the parameter has in the chip files ("hertz", "bytes",
// "bytes_per_second", "flops_per_second", "ns"), unless a unit of the same kind follows it; then it
// is converted. GB are 10^9 bytes, GiB 2^30. "2x" is twice the present value.
#ifndef TPUSIM_CONFIGS_QUANTITY_TEXT_H_
#define TPUSIM_CONFIGS_QUANTITY_TEXT_H_

#include <optional>
#include <string_view>

namespace tpusim::configs {

struct QuantityText {
  double value = 0;     // in the unit asked for
  bool factor = false;  // "2x"
};

// Reads a number with a unit; nothing if it is no number, or its unit is of another kind.
std::optional<QuantityText> ParseQuantity(std::string_view text, std::string_view unit);

}  // namespace tpusim::configs

#endif  // TPUSIM_CONFIGS_QUANTITY_TEXT_H_
