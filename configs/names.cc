#include "configs/names.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace tpusim::configs {
namespace {

std::string Lower(std::string_view text) { return absl::AsciiStrToLower(std::string(text)); }

// "chip.hbm.bytes" has the component "hbm".
bool HasComponent(std::string_view candidate, std::string_view name) {
  const std::string padded = "." + std::string(candidate) + ".";
  return !name.empty() && padded.find("." + std::string(name) + ".") != std::string::npos;
}

bool EndsInComponent(std::string_view candidate, std::string_view name) {
  if (name.empty() || candidate.size() <= name.size()) return false;
  return candidate.ends_with(name) && candidate[candidate.size() - name.size() - 1] == '.';
}

std::vector<std::string> Parts(std::string_view path) { return absl::StrSplit(Lower(path), '.'); }

// 0: the same, 1: nothing in common.
double Difference(std::string_view a, std::string_view b) {
  const size_t longer = std::max<size_t>({a.size(), b.size(), 1});
  return static_cast<double>(EditDistance(a, b)) / static_cast<double>(longer);
}

// An edit distance of parts. To leave one out, as people do with "chip.", costs less than to write
// another one.
double PathDifference(const std::vector<std::string>& path,
                      const std::vector<std::string>& candidate) {
  constexpr double kLeftOut = 0.25, kTooMany = 0.6;
  std::vector<double> row(candidate.size() + 1);
  for (size_t j = 0; j < row.size(); ++j) row[j] = kLeftOut * static_cast<double>(j);
  for (const std::string& part : path) {
    double diagonal = row[0];
    row[0] += kTooMany;
    for (size_t j = 1; j < row.size(); ++j) {
      const double other = diagonal + Difference(part, candidate[j - 1]);
      diagonal = row[j];
      row[j] = std::min({other, row[j] + kTooMany, row[j - 1] + kLeftOut});
    }
  }
  return row.back();
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

std::string NearestPath(std::string_view path, const std::vector<std::string>& candidates) {
  const std::vector<std::string> wanted = Parts(path);
  std::string best;
  double least = 0;
  for (const std::string& candidate : candidates) {
    const double difference = PathDifference(wanted, Parts(candidate));
    if (!best.empty() && difference >= least) continue;
    best = candidate;
    least = difference;
  }
  return best;
}

std::string NearestPathText(std::string_view path, const std::vector<std::string>& candidates) {
  constexpr int64_t kSlips = 3;
  constexpr size_t kShown = 8;
  const std::string nearest = NearestPath(path, candidates);
  std::string text = "the nearest is " + nearest;
  const size_t dot = nearest.rfind('.');
  if (dot == std::string::npos) return text;
  const std::string leaf = nearest.substr(dot + 1);
  if (EditDistance(Parts(path).back(), leaf) <= kSlips) return text;
  const std::string group = nearest.substr(0, dot);
  std::vector<std::string> beside;
  for (const std::string& candidate : candidates) {
    if (candidate.rfind('.') != dot || !candidate.starts_with(group)) continue;
    if (beside.size() == kShown) {
      beside.emplace_back("...");
      break;
    }
    beside.push_back(candidate.substr(dot + 1));
  }
  return text + " (" + group + " has " + Join(beside, ", ") + ")";
}

std::string Join(const std::vector<std::string>& parts, std::string_view separator) {
  return absl::StrJoin(parts, std::string(separator));
}

}  // namespace tpusim::configs
