#include "configs/names.h"

#include <algorithm>
#include <cctype>

namespace tpusim::configs {
namespace {

std::string Lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

// "chip.hbm.bytes" has the component "hbm".
bool HasComponent(std::string_view candidate, std::string_view name) {
  const std::string padded = "." + std::string(candidate) + ".";
  return !name.empty() && padded.find("." + std::string(name) + ".") != std::string::npos;
}

bool EndsInComponent(std::string_view candidate, std::string_view name) {
  if (name.empty() || candidate.size() <= name.size()) return false;
  return candidate.ends_with(name) && candidate[candidate.size() - name.size() - 1] == '.';
}

}  // namespace

int64_t EditDistance(std::string_view a, std::string_view b) {
  // row[j] = distance of the first i characters of a to the first j of b.
  std::vector<int64_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int64_t>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    int64_t diagonal = row[0];
    row[0] = static_cast<int64_t>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int64_t substitute = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({substitute, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

std::string Nearest(std::string_view name, const std::vector<std::string>& candidates) {
  const std::string wanted = Lower(name);
  for (const std::string& candidate : candidates) {
    if (EndsInComponent(candidate, wanted)) return candidate;
  }
  for (const std::string& candidate : candidates) {
    if (HasComponent(candidate, wanted)) return candidate;
  }
  std::string best;
  int64_t best_distance = -1;
  for (const std::string& candidate : candidates) {
    const int64_t distance = EditDistance(wanted, Lower(candidate));
    if (best_distance < 0 || distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string Join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string result;
  for (const std::string& part : parts) {
    if (!result.empty()) result += separator;
    result += part;
  }
  return result;
}

}  // namespace tpusim::configs
