// Scatters that write one element of every row.
//
// The gradient of picking one element per row (the logit of a label) is a scatter into
// zeros: a slow walk over indices, and an array to be stored. A comparison of the index
// with an iota says the same element by element and can be computed where it is used, as
// the TPU compiler has it. Indices outside of the row hit nothing in both.
#include <algorithm>
#include <vector>

#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/passes/simplify/simplify.h"

namespace tpusim::passes {
namespace {

using hlo::Instruction;
using hlo::Opcode;
using hlo::PrimitiveType;
using Dims = std::vector<int64_t>;

// Operand dimension of every dimension of the indices that counts rows, and the
// dimension of the operand that the index picks from.
struct OnePerRow {
  Dims row_dims;
  int64_t picked = -1;
};

// Fills `found` if every row, all dimensions of the operand but one, has one index.
bool IsOnePerRow(const Instruction& scatter, OnePerRow& found) {
  const auto& numbers = scatter.attrs().scatter_dimension_numbers();
  const hlo::Shape &operand = scatter.operand(0)->shape(), &indices = scatter.operand(1)->shape();
  if (numbers.update_window_dims_size() > 0 || numbers.scatter_dims_to_operand_dims_size() != 1 ||
      numbers.input_batching_dims_size() + 1 != operand.rank()) {
    return false;
  }
  found.picked = numbers.scatter_dims_to_operand_dims(0);
  const auto& batching = numbers.scatter_indices_batching_dims();
  for (int64_t d = 0; d < indices.rank(); ++d) {
    const auto at = std::find(batching.begin(), batching.end(), d);
    if (at != batching.end()) {
      found.row_dims.push_back(
          numbers.input_batching_dims(static_cast<int>(at - batching.begin())));
    } else if (indices.dims[d] != 1) {
      return false;
    }
  }
  return std::is_sorted(found.row_dims.begin(), found.row_dims.end());
}

// Whether the scatter makes the update of a zero and an update.
bool AddsOrOverwrites(const Instruction& scatter) {
  const Instruction* root = scatter.called()[0]->root();
  const bool sums =
      root->opcode() == Opcode::kAdd && root->operand(0)->opcode() == Opcode::kParameter &&
      root->operand(1)->opcode() == Opcode::kParameter && root->operand(0) != root->operand(1);
  const bool overwrites =
      root->opcode() == Opcode::kParameter && root->attrs().parameter_number() == 1;
  return sums || overwrites;
}

}  // namespace

Instruction* SimplifyScatter(Instruction* i) {
  if (i->opcode() != Opcode::kScatter || !i->shape().IsArray()) return nullptr;
  OnePerRow rows;
  if (!AddsOrOverwrites(*i) || !IsOnePerRow(*i, rows)) return nullptr;
  // Into an array that is there anyway, walking over few indices is less.
  if (!IsAll(*i->operand(0), 0)) return nullptr;
  // Narrow ones could not count along the row.
  // number: bits of a type
  if (hlo::BitWidth(i->operand(1)->shape().element_type) < 32) return nullptr;

  hlo::Computation* computation = i->parent();
  const hlo::Shape& shape = i->shape();
  const auto add = [&](Opcode opcode, PrimitiveType type, const Dims& dims,
                       std::vector<Instruction*> operands) {
    return computation->Add(opcode, hlo::MakeShape(type, dims), std::move(operands), "", i);
  };
  Dims row_extents;
  for (int64_t d : rows.row_dims) row_extents.push_back(shape.dims[d]);
  const auto per_element = [&](Instruction* per_row) {
    const PrimitiveType type = per_row->shape().element_type;
    Instruction* flat = add(Opcode::kReshape, type, row_extents, {per_row});
    Instruction* all = add(Opcode::kBroadcast, type, shape.dims, {flat});
    hlo::SetDimensions(all, rows.row_dims);
    return all;
  };
  Instruction* index = i->operand(1);
  Instruction* iota = add(Opcode::kIota, index->shape().element_type, shape.dims, {});
  hlo::SetDimensions(iota, {rows.picked});
  Instruction* hit =
      add(Opcode::kCompare, PrimitiveType::kPred, shape.dims, {iota, per_element(index)});
  hit->mutable_attrs().set_comparison_direction("EQ");
  // Added to zero or written over it.
  return add(Opcode::kSelect, shape.element_type, shape.dims,
             {hit, per_element(i->operand(2)), i->operand(0)});
}

}  // namespace tpusim::passes
