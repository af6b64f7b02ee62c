#include "workloads/sharding/propagation/batch_indices.h"

#include <google/protobuf/repeated_field.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "workloads/hlo/ir/attributes.h"
#include "workloads/sharding/propagation/limits.h"

namespace tpusim::sharding {
namespace {

using hlo::Instruction;
using hlo::Opcode;

// Returns the value of every element of an array, if its ops show it.
std::optional<double> ScalarOf(const Instruction& value, const hlo::CallerOf& caller_of) {
  const Instruction* from = hlo::Underlying(&value, caller_of);
  while (from->opcode() == Opcode::kBroadcast || from->opcode() == Opcode::kReshape) {
    from = hlo::Underlying(from->operand(0), caller_of);
  }
  return hlo::ScalarConstant(*from);
}

// Numbers below `size` keep their values in an integral type.
bool Holds(hlo::PrimitiveType type, int64_t size) {
  const int64_t bits = hlo::BitWidth(type) - (hlo::IsSignedIntegral(type) ? 1 : 0);
  return hlo::IsIntegral(type) && type != hlo::PrimitiveType::kPred &&
         (bits >= 63 || size <= int64_t{1} << bits);
}

// Returns the number of dimension `dim` after dimensions of one element were added and removed.
std::optional<int64_t> Reshaped(const hlo::Shape& from, const hlo::Shape& to, int64_t dim) {
  std::vector<int64_t> before, after;
  for (int64_t d = 0; d < from.rank(); ++d) {
    if (from.dims[d] != 1) before.push_back(d);
  }
  for (int64_t d = 0; d < to.rank(); ++d) {
    if (to.dims[d] != 1) after.push_back(d);
  }
  if (before.size() != after.size()) return std::nullopt;
  std::optional<int64_t> found;
  for (size_t i = 0; i < before.size(); ++i) {
    if (from.dims[before[i]] != to.dims[after[i]]) return std::nullopt;
    if (before[i] == dim) found = after[i];
  }
  return found;
}

bool IsNegative(const Instruction& pred, const Instruction& of, const hlo::CallerOf& caller_of) {
  return pred.opcode() == Opcode::kCompare && pred.operand(0) == &of &&
         pred.attrs().comparison_direction() == "LT" &&
         ScalarOf(*pred.operand(1), caller_of) == 0.0;
}

std::optional<int64_t> CountedWithin(const Instruction& made, const hlo::CallerOf& caller_of,
                                     int64_t ops) {
  if (ops == 0) {
    limits::kIndexOperations.Reached();
    return std::nullopt;
  }
  const Instruction& value = *hlo::Underlying(&made, caller_of);
  const hlo::Shape& shape = value.shape();
  const auto of = [&](const Instruction* operand) {
    return CountedWithin(*operand, caller_of, ops - 1);
  };
  const auto scalar = [&](size_t i) { return ScalarOf(*value.operand(i), caller_of); };
  const auto beside = [&](double neutral) -> std::optional<int64_t> {
    for (size_t i : {0, 1}) {
      if (scalar(1 - i) == neutral) return of(value.operand(i));
    }
    return std::nullopt;
  };
  std::optional<int64_t> dim;
  switch (value.opcode()) {
    case Opcode::kIota:
      dim = hlo::OnlyDimension(value);
      break;
    case Opcode::kBroadcast:
      if (const auto from = of(value.operand(0))) dim = hlo::Dimensions(value)[*from];
      break;
    case Opcode::kTranspose:
      if (const auto from = of(value.operand(0))) {
        const auto permutation = hlo::Dimensions(value);
        dim = std::find(permutation.begin(), permutation.end(), *from) - permutation.begin();
      }
      break;
    case Opcode::kReshape:
      if (const auto from = of(value.operand(0))) {
        dim = Reshaped(value.operand(0)->shape(), shape, *from);
      }
      break;
    case Opcode::kConvert:
      dim = of(value.operand(0));
      break;
    case Opcode::kSlice:
      dim = of(value.operand(0));
      if (dim) {
        const hlo::SliceDim slice = hlo::GetSlice(value)[*dim];
        if (slice.start != 0 || slice.stride != 1) return std::nullopt;
      }
      break;
    case Opcode::kAdd:
    case Opcode::kMaximum:
      dim = beside(0);
      break;
    case Opcode::kClamp:
      dim = of(value.operand(1));
      if (dim && !(scalar(0) == 0.0 &&
                   scalar(2).value_or(-1) >= static_cast<double>(shape.dims[*dim] - 1))) {
        return std::nullopt;
      }
      break;
    case Opcode::kSelect:  // i < 0 ? i + n : i, as Python counts
      if (IsNegative(*value.operand(0), *value.operand(2), caller_of)) dim = of(value.operand(2));
      break;
    default:
      break;
  }
  if (!dim || !Holds(shape.element_type, shape.dims[*dim])) return std::nullopt;
  return dim;
}

// Component `c` of the index vectors, as a part of the concatenation that makes them; -1: the
// indices are no concatenation.
int ComponentOperand(const Instruction& indices, int64_t vector_dim, int c) {
  if (indices.opcode() != Opcode::kConcatenate || hlo::OnlyDimension(indices) != vector_dim) {
    return -1;
  }
  int64_t first = 0;
  for (size_t i = 0; i < indices.operands().size(); ++i) {
    const int64_t size = indices.operand(i)->shape().dims[vector_dim];
    if (first == c && size == 1) return static_cast<int>(i);
    first += size;
  }
  return -1;
}

template <typename List>
bool Contains(const List& list, int64_t value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

template <typename List>
void Erase(List& list, int64_t value) {
  list.erase(std::find(list.begin(), list.end(), value));
}

using Numbers = google::protobuf::RepeatedField<int64_t>;

// The lists of a gather, or those of a scatter by the same names.
struct Lists {
  Numbers& start_index_map;   // operand dimension of each component
  Numbers& collapsed;         // operand dimensions that have one element and are left out
  Numbers& operand_batching;  // sorted
  Numbers& indices_batching;  // of each operand batching dimension
};

using Made = std::function<void(const Instruction*, const Instruction*)>;

bool MakeBatching(Instruction* op, size_t at, int64_t vector_dim, Lists lists,
                  const hlo::CallerOf& caller_of, const Made& made) {
  const hlo::Shape& operand = op->operand(0)->shape();
  Instruction* indices = op->operand(at);
  if (vector_dim >= indices->shape().rank() || lists.start_index_map.size() < 2) return false;
  for (int c = 0; c < lists.start_index_map.size(); ++c) {
    const int64_t d = lists.start_index_map.Get(c);
    const int part = ComponentOperand(*indices, vector_dim, c);
    if (part < 0 || !Contains(lists.collapsed, d)) continue;
    const std::optional<int64_t> batch = CountedDimension(*indices->operand(part), caller_of);
    if (!batch || *batch == vector_dim || Contains(lists.indices_batching, *batch) ||
        indices->shape().dims[*batch] != operand.dims[d]) {
      continue;
    }
    std::vector<Instruction*> rest = indices->operands();
    rest.erase(rest.begin() + part);
    Instruction* without = rest[0];
    if (rest.size() > 1) {
      hlo::Shape shape = indices->shape();
      --shape.dims[vector_dim];
      without = indices->parent()->Add(Opcode::kConcatenate, shape, rest, indices->name(), indices);
      hlo::SetDimensions(without, {vector_dim});
      if (made) made(without, indices);
    }
    op->ReplaceOperand(at, without);
    lists.start_index_map.erase(lists.start_index_map.begin() + c);
    Erase(lists.collapsed, d);
    int place = 0;
    while (place < lists.operand_batching.size() && lists.operand_batching.Get(place) < d) ++place;
    const auto insert = [&](Numbers& list, int64_t value) {
      list.Add(value);
      std::rotate(list.begin() + place, list.end() - 1, list.end());
    };
    insert(lists.operand_batching, d);
    insert(lists.indices_batching, *batch);
    return true;
  }
  return false;
}

}  // namespace

std::optional<int64_t> CountedDimension(const Instruction& value, const hlo::CallerOf& caller_of) {
  return CountedWithin(value, caller_of, limits::kIndexOperations.most());
}

void FindBatchIndices(hlo::Computation* computation, const hlo::CallerOf& caller_of,
                      const Made& made) {
  for (Instruction* op : computation->PostOrder()) {
    if (op->opcode() == Opcode::kGather) {
      auto* dims = op->mutable_attrs().mutable_gather_dimension_numbers();
      while (MakeBatching(
          op, 1, dims->index_vector_dim(),
          Lists{*dims->mutable_start_index_map(), *dims->mutable_collapsed_slice_dims(),
                *dims->mutable_operand_batching_dims(),
                *dims->mutable_start_indices_batching_dims()},
          caller_of, made)) {
      }
    } else if (op->opcode() == Opcode::kScatter) {
      auto* dims = op->mutable_attrs().mutable_scatter_dimension_numbers();
      while (MakeBatching(
          op, op->operands().size() / 2, dims->index_vector_dim(),
          Lists{*dims->mutable_scatter_dims_to_operand_dims(),
                *dims->mutable_inserted_window_dims(), *dims->mutable_input_batching_dims(),
                *dims->mutable_scatter_indices_batching_dims()},
          caller_of, made)) {
      }
    }
  }
}

}  // namespace tpusim::sharding
