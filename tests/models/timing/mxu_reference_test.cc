// The closed form of a product's time against a register-level array.
//
// The reference simulates, cycle by cycle, an array of rows x columns cells. Each
// cell holds an active and a staged weight, the left-hand element that passes from
// left to right and the partial sum that passes from top to bottom. Element r of a
// row enters at array row r, r cycles after element 0, so that it meets the sum on
// its way down. The first row of a tile carries a mark that makes every cell it
// passes take its staged weight; a staged weight may be replaced as soon as it has
// been taken. Weights enter through a port of so many array rows per cycle, and
// pass from column to column like everything else. One register feeds the array
// and one holds a result.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "models/timing/kernel_timing.h"

namespace tpusim::timing {
namespace {

int64_t Left(int64_t tile, int64_t row, int64_t k) { return 3 * tile + 5 * row + 7 * k + 1; }
int64_t Weight(int64_t tile, int64_t k, int64_t n) { return 2 * tile + 11 * k + 13 * n + 1; }

struct Element {
  bool valid = false, first = false;
  int64_t value = 0;
  int64_t tile = 0, row = 0;
};

class Array {
 public:
  Array(int64_t rows, int64_t columns, int64_t weight_rows_per_cycle, int64_t tiles, int64_t m)
      : rows_(rows),
        columns_(columns),
        rate_(weight_rows_per_cycle),
        tiles_(tiles),
        m_(m),
        cells_(static_cast<size_t>(rows * columns)) {}

  // Cycles from the first row's register to the last result's register; -1 if a
  // result is wrong. The first tile is staged before.
  int64_t Run() {
    for (int64_t r = 0; r < rows_; ++r) {
      for (int64_t c = 0; c < columns_; ++c) Cell(r, c).staged = Weight(0, r, c);
    }
    Schedule();
    for (int64_t cycle = 0; results_ < tiles_ * m_ * columns_; ++cycle) {
      if (cycle > 1'000'000) return -1;
      Step(cycle);
      if (wrong_) return -1;
      last_ = cycle;
    }
    // Cycles are counted from zero; one for the register before the array and one
    // for that behind it.
    return last_ + 1 + 2;
  }

 private:
  struct State {
    int64_t active = 0, staged = 0, sum = 0;
    Element left;
  };
  State& Cell(int64_t r, int64_t c) { return cells_[static_cast<size_t>(r * columns_ + c)]; }

  // When rows enter and weights are written. Row r of a tile's weights may be
  // written once the tile before has passed it, r cycles after it entered, and must
  // be there before its own tile passes; the port serves older tiles first.
  void Schedule() {
    std::vector<int64_t> used;  // of the port, by cycle
    int64_t begin = 0;
    for (int64_t tile = 0; tile < tiles_; ++tile) {
      if (tile > 0) {
        const int64_t before = begin;
        begin += m_;
        for (int64_t r = 0; r < rows_; ++r) {
          int64_t at = before + r;
          for (;; ++at) {
            if (at >= static_cast<int64_t>(used.size())) used.resize(static_cast<size_t>(at) + 1);
            if (used[static_cast<size_t>(at)] < rate_) break;
          }
          ++used[static_cast<size_t>(at)];
          for (int64_t c = 0; c < columns_; ++c) {
            arriving_.push_back({at + c, r, c, Weight(tile, r, c)});
          }
          begin = std::max(begin, at + 1 - r);
        }
      }
      for (int64_t row = 0; row < m_; ++row) entries_.push_back({begin + row, tile * m_ + row});
    }
  }

  void Step(int64_t cycle) {
    // Right to left and bottom to top, so that every cell sees what its neighbours
    // held in the cycle before.
    for (int64_t r = rows_ - 1; r >= 0; --r) {
      for (int64_t c = columns_ - 1; c >= 0; --c) {
        State& cell = Cell(r, c);
        const Element left = c > 0 ? Cell(r, c - 1).left : Entering(r, cycle);
        const int64_t above = r > 0 ? Cell(r - 1, c).sum : 0;
        if (left.valid && left.first) cell.active = cell.staged;
        cell.left = left;
        cell.sum = left.valid ? above + left.value * cell.active : 0;
        if (r == rows_ - 1 && left.valid) Check(left, c, cell.sum);
      }
    }
    for (const Arrival& a : arriving_) {
      if (a.cycle == cycle) Cell(a.row, a.column).staged = a.value;
    }
  }

  Element Entering(int64_t r, int64_t cycle) const {
    for (const Entry& e : entries_) {
      if (e.cycle + r != cycle) continue;
      const int64_t tile = e.index / m_, row = e.index % m_;
      return {true, row == 0, Left(tile, row, r), tile, row};
    }
    return {};
  }

  void Check(const Element& e, int64_t column, int64_t sum) {
    int64_t expected = 0;
    for (int64_t k = 0; k < rows_; ++k)
      expected += Left(e.tile, e.row, k) * Weight(e.tile, k, column);
    wrong_ = wrong_ || sum != expected;
    ++results_;
  }

  struct Entry {
    int64_t cycle, index;
  };
  struct Arrival {
    int64_t cycle, row, column, value;
  };
  const int64_t rows_, columns_, rate_, tiles_, m_;
  std::vector<State> cells_;
  std::vector<Entry> entries_;
  std::vector<Arrival> arriving_;
  int64_t results_ = 0, last_ = 0;
  bool wrong_ = false;
};

configs::ChipParams ChipWithArray(int64_t rows, int64_t columns, int64_t rate) {
  configs::ChipParams chip;
  chip.tensor_cores = chip.devices = 1;
  chip.mxu.count = 1;
  chip.mxu.rows = rows;
  chip.mxu.columns = columns;
  chip.mxu.lhs_rows_per_cycle = 1;
  chip.mxu.weight_rows_per_cycle = static_cast<double>(rate);
  // A row needs `rows` cycles down and `columns` across.
  chip.mxu.result_latency_cycles = rows + columns;
  chip.vpu.alus_per_lane = chip.vpu.load_slots = chip.vpu.store_slots = 1;
  chip.vpu.eup_slots = chip.vpu.xlu_count = 1;
  return chip;
}

int64_t ClosedForm(const configs::ChipParams& chip, int64_t tiles, int64_t m) {
  isa::Block block;
  block.mxu = {m, chip.mxu.rows * tiles, chip.mxu.columns, isa::NumberFormat::kBf16, 1};
  return TimeBlock(chip, block).total.value();
}

// Rows come in groups of eight sublanes: m is a multiple of eight. Where a tile
// streams for at least as long as its weights take, the closed form is exact.
TEST(MxuReference, StreamingTilesAreExact) {
  for (int64_t rows = 1; rows <= 8; ++rows) {
    for (int64_t columns = 1; columns <= 8; columns += 1) {
      for (int64_t rate : {1, 2, 4}) {
        for (int64_t m : {8, 16, 24}) {
          for (int64_t tiles = 1; tiles <= 5; ++tiles) {
            const configs::ChipParams chip = ChipWithArray(rows, columns, rate);
            EXPECT_EQ(Array(rows, columns, rate, tiles, m).Run(), ClosedForm(chip, tiles, m))
                << rows << "x" << columns << " rate " << rate << " m " << m << " tiles " << tiles;
          }
        }
      }
    }
  }
}

// Fewer rows than a tile takes to load: every further tile costs the load, and the
// whole is never cheaper in the closed form than in the array, which has its first
// tile loaded before and its last not followed by another.
TEST(MxuReference, LoadingTilesCostTheirLoad) {
  for (int64_t rows : {16, 24, 32}) {
    for (int64_t rate : {1, 2}) {
      if (rows / rate <= 8) continue;
      const configs::ChipParams chip = ChipWithArray(rows, 4, rate);
      const int64_t load = rows / rate;
      const int64_t few = Array(rows, 4, rate, 12, 8).Run();
      const int64_t more = Array(rows, 4, rate, 24, 8).Run();
      EXPECT_EQ(more - few, 12 * load) << rows << " at " << rate;
      EXPECT_EQ(ClosedForm(chip, 24, 8) - ClosedForm(chip, 12, 8), 12 * load);
      EXPECT_LE(few, ClosedForm(chip, 12, 8));
      EXPECT_GE(few, ClosedForm(chip, 12, 8) - rows - 2 * load);
    }
  }
}

// Two arrays take half of the tiles each.
TEST(MxuReference, ArraysShareTiles) {
  configs::ChipParams chip = ChipWithArray(8, 8, 1);
  chip.mxu.count = 2;
  EXPECT_EQ(Array(8, 8, 1, 3, 16).Run(), ClosedForm(chip, 6, 16));
}

}  // namespace
}  // namespace tpusim::timing
