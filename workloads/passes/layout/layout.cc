#include "workloads/passes/layout/layout.h"

#include <utility>
#include <vector>

#include "workloads/hlo/ir/opcode.h"
#include "workloads/passes/pipeline/control.h"

namespace tpusim::passes {
namespace {

using hlo::Instruction;
using hlo::Opcode;

std::vector<int64_t> WithoutOnes(const std::vector<int64_t>& dims) {
  std::vector<int64_t> kept;
  for (int64_t d : dims) {
    if (d != 1) kept.push_back(d);
  }
  return kept;
}

// Rows and columns of the tiled part, and the rows of all tiles together.
struct Tiled {
  int64_t columns = 1, rows = 1, outer = 1;
};
Tiled TiledExtents(const std::vector<int64_t>& dims) {
  Tiled t;
  const size_t n = dims.size();
  if (n > 0) t.columns = dims[n - 1];
  if (n > 1) t.rows = dims[n - 2];
  for (size_t d = 0; d + 2 < n; ++d) t.outer *= dims[d];
  return t;
}

// A transpose that only moves dimensions of extent one moves no data.
bool OnlyMovesOnes(const Instruction& transpose) {
  std::vector<int64_t> kept;
  for (int64_t d : transpose.attrs().dimensions()) {
    if (transpose.operand(0)->shape().dims[d] != 1) kept.push_back(d);
  }
  for (size_t k = 1; k < kept.size(); ++k) {
    if (kept[k] < kept[k - 1]) return false;
  }
  return true;
}

// True if something changed.
bool MakeRowMajor(hlo::Shape* shape) {
  bool changed = false;
  for (hlo::Shape& element : shape->tuple) changed = MakeRowMajor(&element) || changed;
  if (!shape->IsArray() || hlo::IsRowMajor(*shape)) return changed;
  shape->layout.minor_to_major = hlo::RowMajor(shape->rank());
  return true;
}

}  // namespace

bool SameTiling(const hlo::Shape& from, const hlo::Shape& to, const target::Target& target) {
  if (from.element_type != to.element_type) return false;
  if (target.PaddedSize(from) != target.PaddedSize(to)) return false;
  const Tiled a = TiledExtents(from.dims), b = TiledExtents(to.dims);
  const int64_t sublanes = target.chip().vpu.sublanes;
  if (a.columns == b.columns) {
    // Rows may be regrouped as long as no tile is split.
    return a.rows == b.rows || (a.rows % sublanes == 0 && b.rows % sublanes == 0);
  }
  return WithoutOnes(from.dims) == WithoutOnes(to.dims) && a.rows == b.rows;
}

absl::Status AssignLayouts(hlo::Module& module, const target::Target& target) {
  for (hlo::Computation* computation : module.computations()) {
    for (Instruction* i : computation->instructions()) {
      if (i->opcode() == Opcode::kConstant) continue;  // its literal stands in its order
      hlo::Shape shape = i->shape();
      if (MakeRowMajor(&shape)) i->set_shape(std::move(shape));
    }
  }
  for (hlo::Computation* computation : ControlComputations(module)) {
    for (Instruction* i : computation->PostOrder()) {
      const bool free_reshape =
          i->opcode() == Opcode::kReshape && SameTiling(i->operand(0)->shape(), i->shape(), target);
      const bool free_transpose = i->opcode() == Opcode::kTranspose && OnlyMovesOnes(*i) &&
                                  SameTiling(i->operand(0)->shape(), i->shape(), target);
      if (!free_reshape && !free_transpose) continue;
      Instruction* bitcast =
          computation->Add(Opcode::kBitcast, i->shape(), {i->operand(0)}, "bitcast");
      *bitcast->mutable_attrs().mutable_metadata() = i->attrs().metadata();
      i->ReplaceAllUsesWith(bitcast);
    }
    computation->RemoveDead();
  }
  return absl::OkStatus();
}

}  // namespace tpusim::passes
