// NAME=VALUE, as options have it: --shard, --trip-count, --kernel-cost, --set, ...
//
// Names are the program's own and have any characters, "=" too: params['w=1']=P('x', None). So the
// value decides where the name ends: VALUE is behind the last "=" behind which there can be one.
#ifndef TPUSIM_CONFIGS_NAME_VALUE_H_
#define TPUSIM_CONFIGS_NAME_VALUE_H_

#include <concepts>
#include <optional>
#include <string_view>

namespace tpusim::configs {

struct NameAndValue {
  std::string_view name, value;  // of the text that was given; the name is not empty
};

// `is_value`: whether a text can be VALUE. Nothing: no "=" has a name before and a value behind it.
template <std::predicate<std::string_view> IsValue>
std::optional<NameAndValue> ParseNameAndValue(std::string_view text, const IsValue& is_value) {
  for (size_t end = text.size(); end > 0;) {
    const size_t equals = text.rfind('=', end - 1);
    if (equals == std::string_view::npos || equals == 0) break;
    const std::string_view value = text.substr(equals + 1);
    if (is_value(value)) return NameAndValue{text.substr(0, equals), value};
    end = equals;
  }
  return std::nullopt;
}

// Splits NAME=VALUE at its last "=", for values that have none themselves.
inline std::optional<NameAndValue> ParseNameAndValue(std::string_view text) {
  return ParseNameAndValue(text, [](std::string_view) { return true; });
}

}  // namespace tpusim::configs

#endif  // TPUSIM_CONFIGS_NAME_VALUE_H_
