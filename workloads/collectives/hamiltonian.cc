// A cycle of neighbours through a box that does not wrap, so that one ring in
// both directions uses two links of every chip.
//
// Seen as a grid of `rows` x `columns` with an even number of rows: along the
// first column up to the end, and back through the remaining columns as a snake.
// A box of three axes is such a grid too, when a snake through two of them
// counts as one dimension.
#include <algorithm>

#include "workloads/collectives/box.h"

namespace tpusim::collectives {
namespace {

// (row, column) of an even number of rows and at least two columns.
std::vector<std::pair<int64_t, int64_t>> GridCycle(int64_t rows, int64_t columns) {
  std::vector<std::pair<int64_t, int64_t>> cycle;
  for (int64_t row = 0; row < rows; ++row) cycle.push_back({row, 0});
  for (int64_t row = rows - 1; row >= 0; --row) {
    // The last row is reached from its left end and left at its right end, the
    // next one is walked back, and so on: with evenly many rows the walk ends
    // beside where it began.
    const bool forth = (rows - 1 - row) % 2 == 0;
    for (int64_t i = 1; i < columns; ++i) cycle.push_back({row, forth ? i : columns - i});
  }
  return cycle;
}

}  // namespace

std::vector<Position> HamiltonianCycle(const Box& box) {
  if (box.runs.size() < 2 || !box.contiguous() || box.SpansCores() || box.SpansSlices() ||
      box.members() % 2 != 0) {
    return {};
  }
  // The dimension that is walked as rows must be even; a snake through two axes
  // is as long as their product.
  std::vector<Position> cycle;
  if (box.runs.size() == 2) {
    const bool x_rows = box.runs[0].n % 2 == 0;
    const int64_t rows = box.runs[x_rows ? 0 : 1].n;
    for (const auto& [row, column] : GridCycle(rows, box.members() / rows)) {
      cycle.push_back(x_rows ? Position{row, column} : Position{column, row});
    }
    return cycle;
  }
  size_t even = 0;
  while (box.runs[even].n % 2 != 0) ++even;
  const size_t inner = even == 0 ? 1 : 0;
  const size_t outer = 3 - even - inner;  // number: the third axis
  const int64_t width = box.runs[inner].n;
  for (const auto& [row, column] : GridCycle(box.runs[even].n, width * box.runs[outer].n)) {
    Position position = {};
    position[even] = row;
    position[outer] = column / width;
    position[inner] = column / width % 2 == 0 ? column % width : width - 1 - column % width;
    cycle.push_back(position);
  }
  return cycle;
}

}  // namespace tpusim::collectives
