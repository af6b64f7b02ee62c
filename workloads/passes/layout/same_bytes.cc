#include <algorithm>

#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/passes/layout/order_classes.h"

namespace tpusim::passes {
namespace {

using hlo::Instruction;
using hlo::Opcode;

Dims WithoutOnes(const Dims& dims) {
  Dims kept;
  for (int64_t d : dims) {
    if (d != 1) kept.push_back(d);
  }
  return kept;
}

// Dimensions of extents other than one, slowest first.
Dims Moving(const hlo::Shape& shape) {
  Dims dims;
  for (int64_t place = shape.rank() - 1; place >= 0; --place) {
    const int64_t d = hlo::MinorDimension(shape, place);
    if (shape.dims[static_cast<size_t>(d)] != 1) dims.push_back(d);
  }
  return dims;
}

}  // namespace

bool SameTiling(const hlo::Shape& from, const hlo::Shape& to, const target::Target& target) {
  if (from.element_type != to.element_type) return false;
  if (target.PaddedSize(from) != target.PaddedSize(to)) return false;
  const Dims a = hlo::PhysicalDims(from), b = hlo::PhysicalDims(to);
  const auto extent = [](const Dims& dims, size_t place) {
    return place < dims.size() ? dims[dims.size() - 1 - place] : int64_t{1};
  };
  const int64_t rows = extent(a, 1), other_rows = extent(b, 1);
  if (extent(a, 0) == extent(b, 0)) {
    // Rows may be regrouped as long as no tile is split.
    const int64_t sublanes = target.chip().vpu.sublanes;
    return rows == other_rows || (rows % sublanes == 0 && other_rows % sublanes == 0);
  }
  return WithoutOnes(a) == WithoutOnes(b) && rows == other_rows;
}

std::vector<ReshapeRun> ReshapeRuns(const Dims& from, const Dims& to) {
  std::vector<ReshapeRun> runs;
  if (std::count(from.begin(), from.end(), 0) > 0) return runs;
  size_t a = 0, b = 0;
  while (true) {
    while (a < from.size() && from[a] == 1) ++a;
    while (b < to.size() && to[b] == 1) ++b;
    if (a == from.size() || b == to.size()) return runs;
    ReshapeRun run;
    int64_t left = 1, right = 1;
    do {
      if (left <= right && a < from.size()) {
        if (from[a] != 1) run.from.push_back(static_cast<int64_t>(a));
        left *= from[a++];
      } else if (b < to.size()) {
        if (to[b] != 1) run.to.push_back(static_cast<int64_t>(b));
        right *= to[b++];
      } else {
        return {};
      }
    } while (left != right || run.to.empty());
    runs.push_back(std::move(run));
  }
}

Dims OrderThroughReshape(const Dims& from, const Dims& to, const Dims& order) {
  const std::vector<ReshapeRun> runs = ReshapeRuns(from, to);
  std::vector<size_t> run_of(from.size(), runs.size());
  for (size_t r = 0; r < runs.size(); ++r) {
    for (int64_t d : runs[r].from) run_of[static_cast<size_t>(d)] = r;
  }
  Dims result;
  std::vector<bool> placed(to.size(), false);
  const Dims minor_first = [&] {
    Dims kept;
    for (int64_t d : order) {
      if (run_of[static_cast<size_t>(d)] < runs.size()) kept.push_back(d);
    }
    return kept;
  }();
  for (size_t n = 0; n < minor_first.size();) {
    const ReshapeRun& run = runs[run_of[static_cast<size_t>(minor_first[n])]];
    // The whole run, its last dimension fastest.
    for (size_t k = run.from.size(); k-- > 0; ++n) {
      if (n >= minor_first.size() || minor_first[n] != run.from[k]) return {};
    }
    for (size_t k = run.to.size(); k-- > 0;) {
      result.push_back(run.to[k]);
      placed[static_cast<size_t>(run.to[k])] = true;
    }
  }
  for (size_t d = to.size(); d-- > 0;) {
    if (!placed[d]) result.push_back(static_cast<int64_t>(d));
  }
  return result;
}

bool MovesNothing(const Instruction& i, const target::Target& target) {
  const hlo::Shape &from = i.operand(0)->shape(), &to = i.shape();
  if (!SameTiling(from, to, target)) return false;
  if (i.opcode() == Opcode::kTranspose) {
    const std::vector<int64_t> dims = hlo::Dimensions(i);
    Dims moved;
    for (int64_t d : Moving(to)) moved.push_back(dims[static_cast<size_t>(d)]);
    return moved == Moving(from);
  }
  if (i.opcode() != Opcode::kReshape) return false;
  hlo::Shape alike = to;
  alike.layout.minor_to_major = OrderThroughReshape(from.dims, to.dims, hlo::MinorToMajor(from));
  return !alike.layout.minor_to_major.empty() && Moving(alike) == Moving(to);
}

}  // namespace tpusim::passes
