// Operations that only say which element goes where.
#include <algorithm>
#include <optional>
#include <vector>

#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/transforms/extents_of_one.h"
#include "workloads/passes/simplify/simplify.h"

namespace tpusim::passes {
namespace {

using hlo::Instruction;
using hlo::Opcode;
using hlo::Reshaped;
using Dims = std::vector<int64_t>;

Instruction* Broadcast(Instruction* value, const hlo::Shape& shape, const Dims& dims,
                       const Instruction* like) {
  Instruction* broadcast = value->parent()->Add(
      Opcode::kBroadcast, hlo::MakeShape(value->shape().element_type, shape.dims), {value},
      "broadcast", nullptr);
  if (like->attrs().has_metadata()) {
    *broadcast->mutable_attrs().mutable_metadata() = like->attrs().metadata();
  }
  hlo::SetDimensions(broadcast, dims);
  return broadcast;
}

// ---- Transposes ------------------------------------------------------------

bool OnlyMovesOnes(const Instruction& transpose, const Dims& permutation) {
  int64_t last = -1;
  for (int64_t d : permutation) {
    if (transpose.operand(0)->shape().dims[d] == 1) continue;
    if (d < last) return false;
    last = d;
  }
  return true;
}

Instruction* OfTranspose(Instruction* i) {
  Instruction* from = i->operand(0);
  const Dims permutation = hlo::Dimensions(*i);
  if (OnlyMovesOnes(*i, permutation)) return Reshaped(from, i->shape().dims, i);
  if (from->opcode() == Opcode::kTranspose) {
    const Dims first = hlo::Dimensions(*from);
    Dims both;
    for (int64_t d : permutation) both.push_back(first[d]);
    Instruction* transpose =
        i->parent()->Add(Opcode::kTranspose, i->shape(), {from->operand(0)}, "transpose", i);
    hlo::SetDimensions(transpose, both);
    return transpose;
  }
  if (from->opcode() != Opcode::kBroadcast) return nullptr;
  // Only where the operand keeps its order; else it is the operand that is transposed, below.
  const Dims mapped = hlo::Dimensions(*from);
  Dims place(permutation.size());
  for (size_t d = 0; d < permutation.size(); ++d) place[permutation[d]] = static_cast<int64_t>(d);
  Dims dims;
  for (int64_t d : mapped) dims.push_back(place[d]);
  if (!std::is_sorted(dims.begin(), dims.end())) return nullptr;
  return Broadcast(from->operand(0), i->shape(), dims, i);
}

// ---- Reshapes --------------------------------------------------------------

Instruction* OfReshape(Instruction* i) {
  Instruction* from = i->operand(0);
  if (from->shape().dims == i->shape().dims) return from;
  if (from->opcode() == Opcode::kReshape) return Reshaped(from->operand(0), i->shape().dims, i);
  if (from->opcode() != Opcode::kBroadcast) return nullptr;
  if (from->operand(0)->shape().IsScalar()) return Broadcast(from->operand(0), i->shape(), {}, i);
  // Extents of one come and go among dimensions that the broadcast made.
  const auto match = hlo::MatchWithoutOnes(from->shape(), i->shape());
  if (!match.has_value()) return nullptr;
  Dims dims;
  for (int64_t d : hlo::Dimensions(*from)) {
    if ((*match)[d] < 0) return nullptr;
    dims.push_back((*match)[d]);
  }
  return Broadcast(from->operand(0), i->shape(), dims, i);
}

// ---- Broadcasts ------------------------------------------------------------

bool IsIota(const Dims& dims) {
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] != static_cast<int64_t>(d)) return false;
  }
  return true;
}

Instruction* OfBroadcast(Instruction* i) {
  Instruction* from = i->operand(0);
  const Dims dims = hlo::Dimensions(*i);
  if (from->shape().dims == i->shape().dims && IsIota(dims)) return from;
  if (i->shape().ElementCount() == from->shape().ElementCount() && !from->shape().IsScalar() &&
      std::is_sorted(dims.begin(), dims.end())) {
    return Reshaped(from, i->shape().dims, i);
  }
  if (from->opcode() == Opcode::kBroadcast) {
    Dims both;
    for (int64_t d : hlo::Dimensions(*from)) both.push_back(dims[d]);
    return Broadcast(from->operand(0), i->shape(), both, i);
  }
  if (from->opcode() != Opcode::kReshape) return nullptr;
  // Extents of one that the reshape put in are as good as those that the broadcast makes.
  Instruction* origin = from->operand(0);
  const auto match = hlo::MatchWithoutOnes(origin->shape(), from->shape());
  if (!match.has_value()) return nullptr;
  Dims both;
  for (int64_t d : *match) {
    if (d < 0) return nullptr;
    both.push_back(dims[d]);
  }
  return Broadcast(origin, i->shape(), both, i);
}

// ---- Parts -----------------------------------------------------------------

Instruction* Slice(Instruction* value, const std::vector<hlo::SliceDim>& parts,
                   const Instruction* like) {
  Dims dims;
  for (const auto& part : parts) {
    dims.push_back((part.limit - part.start + part.stride - 1) / part.stride);
  }
  Instruction* slice =
      value->parent()->Add(Opcode::kSlice, hlo::MakeShape(value->shape().element_type, dims),
                           {value}, "slice", like->opcode() == Opcode::kSlice ? like : nullptr);
  if (like->attrs().has_metadata()) {
    *slice->mutable_attrs().mutable_metadata() = like->attrs().metadata();
  }
  hlo::SetSlice(slice, parts);
  return slice;
}

// A slice of an elementwise result that nothing else reads: operands are sliced instead, and only
// the slice is computed.
Instruction* PartOfElementwise(Instruction* i) {
  Instruction* from = i->operand(0);
  if (!hlo::IsElementwise(*from) || from->users().size() > 1 || from->IsRoot() ||
      from->has_control_edges()) {
    return nullptr;
  }
  std::vector<Instruction*> parts;
  for (Instruction* operand : from->operands()) {
    if (operand->shape().IsScalar()) {  // of a select or clamp
      parts.push_back(operand);
      continue;
    }
    std::vector<Instruction*> operands = i->operands();
    operands[0] = operand;
    parts.push_back(i->parent()->Add(i->opcode(),
                                     hlo::MakeShape(operand->shape().element_type, i->shape().dims),
                                     operands, i->name(), i));
  }
  return i->parent()->Add(from->opcode(), i->shape(), parts, from->name(), from);
}

Instruction* OfSlice(Instruction* i) {
  Instruction* from = i->operand(0);
  if (from->shape().dims == i->shape().dims) return from;  // all of it
  if (Instruction* part = PartOfElementwise(i)) return part;
  const std::vector<hlo::SliceDim> parts = hlo::GetSlice(*i);
  if (from->opcode() == Opcode::kSlice) {
    std::vector<hlo::SliceDim> both = hlo::GetSlice(*from);
    for (size_t d = 0; d < both.size(); ++d) {
      hlo::SliceDim& part = both[d];
      // Up to behind the last element taken.
      const int64_t count = i->shape().dims[d];
      const int64_t stride = part.stride * parts[d].stride;
      part.start += part.stride * parts[d].start;
      part.limit = count == 0 ? part.start : part.start + (count - 1) * stride + 1;
      part.stride = stride;
    }
    return Slice(from->operand(0), both, i);
  }
  if (from->opcode() == Opcode::kBroadcast) {
    for (int64_t d : hlo::Dimensions(*from)) {
      if (i->shape().dims[d] != from->shape().dims[d]) return nullptr;
    }
    return Broadcast(from->operand(0), i->shape(), hlo::Dimensions(*from), i);
  }
  if (from->opcode() != Opcode::kConcatenate) return nullptr;
  // All of it from one of the parts.
  const int64_t along = hlo::OnlyDimension(*from);
  int64_t begin = 0;
  for (Instruction* piece : from->operands()) {
    const int64_t end = begin + piece->shape().dims[along];
    if (parts[along].start >= begin && parts[along].limit <= end) {
      std::vector<hlo::SliceDim> inside = parts;
      inside[along].start -= begin;
      inside[along].limit -= begin;
      return Slice(piece, inside, i);
    }
    begin = end;
  }
  return nullptr;
}

// Starts of a dynamic slice or update, as they are clamped; nothing if data decides.
std::optional<Dims> ConstantStarts(const Instruction& i, size_t first, const Dims& sizes) {
  Dims starts;
  for (size_t d = 0; d < sizes.size(); ++d) {
    const int64_t last = i.operand(0)->shape().dims[d] - sizes[d];
    if (last == 0) {  // wherever it begins
      starts.push_back(0);
      continue;
    }
    if (first + d >= i.operands().size()) return std::nullopt;  // starts as one vector
    const auto start = hlo::ScalarIntConstant(*i.operand(first + d));
    if (!start.has_value()) return std::nullopt;
    starts.push_back(std::clamp<int64_t>(*start, 0, last));
  }
  return starts;
}

Instruction* OfDynamicSlice(Instruction* i) {
  const auto starts = ConstantStarts(*i, 1, i->shape().dims);
  if (!starts.has_value()) return PartOfElementwise(i);
  if (i->operand(0)->shape().dims == i->shape().dims) return i->operand(0);
  std::vector<hlo::SliceDim> parts;
  for (size_t d = 0; d < starts->size(); ++d) {
    parts.push_back({(*starts)[d], (*starts)[d] + i->shape().dims[d], 1});
  }
  return Slice(i->operand(0), parts, i);
}

bool ChangesNothing(const std::vector<hlo::PaddingDim>& padding) {
  return std::all_of(padding.begin(), padding.end(),
                     [](const hlo::PaddingDim& d) { return d == hlo::PaddingDim(); });
}

}  // namespace

Instruction* SimplifyIndexing(Instruction* i) {
  switch (i->opcode()) {
    case Opcode::kTranspose:
      return OfTranspose(i);
    case Opcode::kReshape:
      return OfReshape(i);
    case Opcode::kBroadcast:
      return OfBroadcast(i);
    case Opcode::kSlice:
      return OfSlice(i);
    case Opcode::kDynamicSlice:
      return OfDynamicSlice(i);
    case Opcode::kDynamicUpdateSlice:
      return i->operand(1)->shape().dims == i->shape().dims ? i->operand(1) : nullptr;
    case Opcode::kPad:
      return ChangesNothing(hlo::GetPadding(*i)) ? i->operand(0) : nullptr;
    case Opcode::kConcatenate:
      return i->operands().size() == 1 ? i->operand(0) : nullptr;
    case Opcode::kReverse: {
      const Dims dims = hlo::Dimensions(*i);
      const bool ones =
          std::all_of(dims.begin(), dims.end(), [&](int64_t d) { return i->shape().dims[d] == 1; });
      return ones ? i->operand(0) : nullptr;
    }
    case Opcode::kGetTupleElement: {
      const Instruction* tuple = i->operand(0);
      return tuple->opcode() == Opcode::kTuple ? tuple->operand(i->attrs().tuple_index()) : nullptr;
    }
    default:
      return nullptr;
  }
}

}  // namespace tpusim::passes
