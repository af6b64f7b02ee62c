// Numbers that are written in a text of the user's or of a file.
#ifndef TPUSIM_CONFIGS_NUMBER_TEXT_H_
#define TPUSIM_CONFIGS_NUMBER_TEXT_H_

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace tpusim::configs {

// The number that the text is, from its first character to its last.
template <typename Number>
std::optional<Number> NumberIn(std::string_view text) {
  Number number{};
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, number);
  if (error != std::errc() || end != last) return std::nullopt;
  return number;
}

// "1,4,2048": one number at least.
inline std::optional<std::vector<int64_t>> NumbersIn(std::string_view text) {
  std::vector<int64_t> numbers;
  while (true) {
    const size_t comma = text.find(',');
    const std::optional<int64_t> number = NumberIn<int64_t>(text.substr(0, comma));
    if (!number) return std::nullopt;
    numbers.push_back(*number);
    if (comma == std::string_view::npos) return numbers;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace tpusim::configs

#endif  // TPUSIM_CONFIGS_NUMBER_TEXT_H_
