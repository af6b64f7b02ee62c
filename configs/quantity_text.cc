#include "configs/quantity_text.h"

#include <charconv>

namespace tpusim::configs {
namespace {

// A unit of the chip files: how it is written, and how its prefixes scale.
struct PrefixedUnit {
  std::string_view unit, symbol;
  bool binary = false;  // Ki, Mi, ... as well
};
constexpr PrefixedUnit kUnits[] = {{"bytes", "B", true},
                           {"bytes_per_second", "B/s", true},
                           {"flops_per_second", "FLOP/s"},
                           {"hertz", "Hz"}};

struct Scale {
  std::string_view text;
  double factor = 1;
};
constexpr Scale kDecimal[] = {{"", 1},    {"k", 1e3},  {"K", 1e3}, {"M", 1e6},
                              {"G", 1e9}, {"T", 1e12}, {"P", 1e15}};
constexpr Scale kBinary[] = {{"Ki", 0x1p10}, {"Mi", 0x1p20}, {"Gi", 0x1p30}, {"Ti", 0x1p40}};
constexpr Scale kNanoseconds[] = {{"ps", 1e-3}, {"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};

std::optional<double> FactorOf(std::string_view suffix, std::string_view unit) {
  if (suffix.empty()) return 1;
  if (unit == "ns") {
    for (const Scale& scale : kNanoseconds) {
      if (suffix == scale.text) return scale.factor;
    }
    return std::nullopt;
  }
  for (const PrefixedUnit& known : kUnits) {
    if (known.unit != unit || !suffix.ends_with(known.symbol)) continue;
    const std::string_view prefix = suffix.substr(0, suffix.size() - known.symbol.size());
    for (const Scale& scale : kDecimal) {
      if (prefix == scale.text) return scale.factor;
    }
    for (const Scale& scale : kBinary) {
      if (known.binary && prefix == scale.text) return scale.factor;
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<QuantityText> ParseQuantity(std::string_view text, std::string_view unit) {
  QuantityText parsed;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), parsed.value);
  if (error != std::errc()) return std::nullopt;
  std::string_view suffix = text.substr(static_cast<size_t>(end - text.data()));
  while (suffix.starts_with(' ')) suffix.remove_prefix(1);
  if (suffix == "x") {
    parsed.factor = true;
    return parsed;
  }
  const std::optional<double> factor = FactorOf(suffix, unit);
  if (!factor) return std::nullopt;
  parsed.value *= *factor;
  return parsed;
}

}  // namespace tpusim::configs
