#include "workloads/collectives/linear_program.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "configs/status_macros.h"
#include "workloads/collectives/limits.h"

namespace tpusim::collectives {
namespace {

constexpr double kTiny = 1e-11;
// A vertex may have several bases, and choosing the steepest column may walk round
// them for ever: after so many steps without gain Bland's rule, which does not.
constexpr int kMostIdleSteps = 100;

// Columns: the ways, the time of each group, one slack per server, the right-hand
// side. Rows: per server load - time + slack = 0, then sum of the ways = 1, then
// the sum of the times as it depends on the columns outside the basis.
class Table {
 public:
  Table(const std::vector<std::vector<double>>& loads, size_t group_size)
      : ways_(loads.size()),
        servers_(loads[0].size()),
        groups_(servers_ / group_size),
        columns_(ways_ + groups_ + servers_ + 1),
        cells_((servers_ + 2) * columns_),
        basis_(servers_ + 1) {
    double largest = 0;
    for (const auto& load : loads) {
      largest = std::max(largest, *std::ranges::max_element(load));
    }
    TPUSIM_CHECK(largest > 0, "work that takes no time");
    for (size_t s = 0; s < servers_; ++s) {
      for (size_t w = 0; w < ways_; ++w) At(s, w) = loads[w][s] / largest;
      At(s, ways_ + s / group_size) = -1;
      At(s, ways_ + groups_ + s) = 1;
      basis_[s] = ways_ + groups_ + s;
    }
    for (size_t w = 0; w < ways_; ++w) At(servers_, w) = 1;
    At(servers_, columns_ - 1) = 1;
    for (size_t g = 0; g < groups_; ++g) At(servers_ + 1, ways_ + g) = 1;
    // To begin with the first way does everything, and each group takes as long as
    // its server that is then farthest behind.
    Pivot(servers_, 0);
    for (size_t g = 0; g < groups_; ++g) {
      size_t busiest = g * group_size;
      for (size_t s = busiest; s < (g + 1) * group_size; ++s) {
        if (Right(s) < Right(busiest)) busiest = s;
      }
      Pivot(busiest, ways_ + g);
    }
  }

  void Solve() {
    int idle = 0;
    for (int step = 0; step < limits::kProgramSteps.most(); ++step) {
      const size_t column = Entering(idle > kMostIdleSteps);
      if (column == columns_) return;
      const size_t row = Leaving(column);
      TPUSIM_CHECK(row <= servers_, "the sum of times has no lower limit");
      idle = Right(row) > kTiny ? 0 : idle + 1;
      Pivot(row, column);
    }
    limits::kProgramSteps.Reached();
  }

  std::vector<double> Parts() const {
    std::vector<double> parts(ways_);
    for (size_t row = 0; row <= servers_; ++row) {
      if (basis_[row] < ways_) parts[basis_[row]] = std::max(0.0, cells_[(row + 1) * columns_ - 1]);
    }
    return parts;
  }

 private:
  double& At(size_t row, size_t column) { return cells_[row * columns_ + column]; }
  double Right(size_t row) { return At(row, columns_ - 1); }

  // The column with the steepest gain, or the first with any; columns_ if none has.
  size_t Entering(bool first) {
    size_t best = columns_;
    double steepest = -kTiny;
    for (size_t column = 0; column + 1 < columns_; ++column) {
      if (At(servers_ + 1, column) < steepest) {
        best = column;
        if (first) break;
        steepest = At(servers_ + 1, column);
      }
    }
    return best;
  }

  // The row that limits the column most; among equals the one whose variable
  // comes first.
  size_t Leaving(size_t column) {
    size_t best = servers_ + 1;
    double least = 0;
    for (size_t row = 0; row <= servers_; ++row) {
      if (At(row, column) <= kTiny) continue;
      const double ratio = Right(row) / At(row, column);
      const bool tie = best <= servers_ && std::abs(ratio - least) <= kTiny;
      if (best > servers_ || (tie ? basis_[row] < basis_[best] : ratio < least)) {
        best = row;
        least = ratio;
      }
    }
    return best;
  }

  void Pivot(size_t row, size_t column) {
    const double pivot = At(row, column);
    for (size_t c = 0; c < columns_; ++c) At(row, c) /= pivot;
    for (size_t r = 0; r < servers_ + 2; ++r) {
      const double factor = At(r, column);
      if (r == row || factor == 0) continue;
      for (size_t c = 0; c < columns_; ++c) At(r, c) -= factor * At(row, c);
      At(r, column) = 0;
    }
    At(row, column) = 1;
    basis_[row] = column;
  }

  size_t ways_, servers_, groups_, columns_;
  std::vector<double> cells_;
  std::vector<size_t> basis_;  // per row
};

}  // namespace

std::vector<double> LeastSumOfMaxima(const std::vector<std::vector<double>>& loads,
                                     int group_size) {
  Table table(loads, static_cast<size_t>(group_size));
  table.Solve();
  return table.Parts();
}

}  // namespace tpusim::collectives
