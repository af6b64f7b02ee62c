#include "workloads/passes/annotate/routing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>
#include <span>
#include <string_view>

#include "configs/number_text.h"
#include "configs/status_macros.h"

namespace tpusim::passes {
namespace {

using Shares = std::vector<double>;

// Returns the share of each device.
Shares SharesOfDevices(const Shares& shares, int64_t devices) {
  Shares of_device(static_cast<size_t>(devices), 0);
  const size_t held = shares.size() / of_device.size();
  for (size_t e = 0; e < shares.size(); ++e) of_device[e / held] += shares[e];
  return of_device;
}

// Returns whole rows of each share, whose ends are rounded so that the sum is rounded as well.
std::vector<int64_t> WholeRows(std::span<const double> shares, double all, int64_t room) {
  std::vector<int64_t> rows;
  double end = 0;
  int64_t taken = 0;
  for (const double share : shares) {
    end += share * all;
    const int64_t until = std::min<int64_t>(room, std::llround(end));
    rows.push_back(until - taken);
    taken = until;
  }
  return rows;
}

RoutedRows HotOf(const Shares& of_device, double all, int64_t room) {
  RoutedRows routed;
  const auto hot = std::ranges::max_element(of_device);
  routed.hot = hot - of_device.begin();
  routed.imbalance = *hot * static_cast<double>(of_device.size());
  for (const double share : of_device) {
    routed.dropped += std::max(0.0, share - static_cast<double>(room) / std::max(1.0, all));
  }
  return routed;
}

absl::Status BadRouting(const std::string& text, const std::string& what) {
  return UserError(fmt::format("{}: {}", text, what));
}

absl::StatusOr<std::vector<std::vector<int64_t>>> LayersIn(const std::string& file) {
  constexpr int64_t kMostRows = int64_t{1} << 48;  // number: sums of them are exact
  std::ifstream in(file);
  if (!in) return BadRouting(file, "neither uniform, zipf:EXPONENT nor a file that can be read");
  const nlohmann::json json = nlohmann::json::parse(in, nullptr, /*allow_exceptions=*/false);
  if (!json.is_array() || json.empty()) {
    return BadRouting(file, "is no JSON list of layers, each a list of rows per expert");
  }
  std::vector<std::vector<int64_t>> layers;
  for (const nlohmann::json& layer : json) {
    const std::string which = fmt::format("layer {}", layers.size());
    if (!layer.is_array() || layer.empty()) {
      return BadRouting(file, which + " is no list of rows per expert");
    }
    std::vector<int64_t>& counts = layers.emplace_back();
    for (const nlohmann::json& count : layer) {
      if (!count.is_number_integer() || count < 0 || count > kMostRows) {
        return BadRouting(file, fmt::format("{}: {} of expert {} is no whole number from 0 to 2^48",
                                            which, count.dump(-1, ' ', true), counts.size()));
      }
      counts.push_back(count.get<int64_t>());
    }
    if (std::ranges::max(counts) == 0) return BadRouting(file, which + " routes no row");
  }
  return layers;
}

}  // namespace

absl::StatusOr<Routing> ParseRouting(const std::string& text) {
  constexpr std::string_view kZipf = "zipf:";
  constexpr double kSteepest = 10;  // number: one expert gets 99.9 % of all rows
  Routing routing;
  routing.text = text;
  if (text == "uniform") return routing;
  if (!text.starts_with(kZipf)) {
    ASSIGN_OR_RETURN(routing.layers, LayersIn(text));
    return routing;
  }
  const auto exponent = configs::NumberIn<double>(text.substr(kZipf.size()));
  if (!exponent || !(*exponent >= 0 && *exponent <= kSteepest)) {
    return BadRouting(text, fmt::format("the exponent is no number from 0 to {}", kSteepest));
  }
  routing.exponent = *exponent;
  return routing;
}

Shares ZipfShares(double exponent, int64_t experts, int64_t devices) {
  Shares shares(static_cast<size_t>(experts), 0);
  double sum = 0;
  for (int64_t rank = 0; rank < experts; ++rank) {
    const double share = std::pow(static_cast<double>(rank + 1), -exponent);
    shares[rank % devices * (experts / devices) + rank / devices] = share;
    sum += share;
  }
  for (double& share : shares) share /= sum;
  return shares;
}

Shares CountedShares(const std::vector<std::vector<int64_t>>& layers, int64_t devices) {
  Shares mean(layers.front().size(), 0);
  const size_t held = mean.size() / static_cast<size_t>(devices);
  for (const std::vector<int64_t>& counts : layers) {
    const double sum = std::accumulate(counts.begin(), counts.end(), 0.0);
    std::vector<Shares> blocks(static_cast<size_t>(devices));
    for (size_t e = 0; e < counts.size(); ++e) {
      blocks[e / held].push_back(static_cast<double>(counts[e]) / sum);
    }
    if (layers.size() > 1) {
      for (Shares& block : blocks) std::ranges::sort(block, std::greater<>());
      std::ranges::stable_sort(blocks, std::greater<>(), [](const Shares& block) {
        return std::accumulate(block.begin(), block.end(), 0.0);
      });
    }
    for (size_t e = 0; e < mean.size(); ++e) {
      mean[e] += blocks[e / held][e % held] / static_cast<double>(layers.size());
    }
  }
  return mean;
}

RoutedRows RowsOfHotDevice(const Shares& shares, int64_t devices, int64_t balanced, int64_t room) {
  const double all = static_cast<double>(devices) * static_cast<double>(balanced);
  RoutedRows routed = HotOf(SharesOfDevices(shares, devices), all, room);
  const auto held = static_cast<int64_t>(shares.size()) / devices;
  routed.rows = WholeRows(std::span(shares).subspan(routed.hot * held, held), all, room);
  return routed;
}

RoutedRows RowsSentTo(const Shares& shares, int64_t devices, int64_t sent, int64_t room) {
  const Shares of_device = SharesOfDevices(shares, devices);
  RoutedRows routed =
      HotOf(of_device, static_cast<double>(devices) * static_cast<double>(sent), room);
  routed.rows = WholeRows(of_device, static_cast<double>(sent), sent);
  for (int64_t& rows : routed.rows) rows = std::min(rows, room / devices);
  return routed;
}

}  // namespace tpusim::passes
