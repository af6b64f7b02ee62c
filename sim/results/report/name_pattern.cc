#include "sim/results/report/name_pattern.h"

#include "configs/status_macros.h"

namespace tpusim::results {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// The number, or the `*`, at `at`; "" if there is none.
std::string_view NumberAt(std::string_view name, size_t at) {
  if (at < name.size() && name[at] == '*') return name.substr(at, 1);
  size_t end = at;
  while (end < name.size() && IsDigit(name[end])) ++end;
  return name.substr(at, end - at);
}

// Returns the common pattern of two texts with one key.
std::string Common(std::string_view a, std::string_view b) {
  std::string common;
  size_t i = 0, j = 0;
  while (i < a.size()) {
    const std::string_view number = NumberAt(a, i), other = NumberAt(b, j);
    TPUSIM_CHECK(number.empty() == other.empty() && j < b.size(), "names of different keys");
    if (number.empty()) {
      common += a[i];
      ++i;
      ++j;
      continue;
    }
    common += number == other ? number : "*";
    i += number.size();
    j += other.size();
  }
  return common;
}

}  // namespace

std::string NumberlessKey(std::string_view name) {
  std::string key;
  for (size_t i = 0; i < name.size();) {
    const std::string_view number = NumberAt(name, i);
    key += number.empty() ? name[i] : '#';
    i += number.empty() ? 1 : number.size();
  }
  return key;
}

void NamePattern::Add(const std::string& name) {
  if (!names_.insert(name).second) return;
  text_ = names_.size() == 1 ? name : Common(text_, name);
}

}  // namespace tpusim::results
