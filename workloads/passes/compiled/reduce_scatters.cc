#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "configs/status_macros.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/ir/walk.h"
#include "workloads/passes/compiled/compiled.h"
#include "workloads/passes/compiled/order_edit.h"
#include "workloads/passes/compiled/reasons.h"

namespace tpusim::passes {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;
using hlo::Shape;

// Past what moves nothing.
const Instruction* Past(const Instruction* i, Opcode opcode) {
  while (i->opcode() == opcode) i = i->operand(0);
  return i;
}

// An array that is summed over a group and cut into a piece for each member.
struct Scattered {
  Instruction* summed = nullptr;     // operand of the fusion
  const Instruction* pad = nullptr;  // that makes it divisible, or null
  Shape piece;                       // as the fusion's result has it
  int64_t dimension = -1;            // that is cut
};

// The only dimension in which two shapes differ.
std::optional<int64_t> CutDimension(const Shape& whole, const Shape& piece) {
  std::optional<int64_t> cut;
  if (whole.rank() != piece.rank()) return std::nullopt;
  for (int64_t d = 0; d < whole.rank(); ++d) {
    if (whole.dims[d] == piece.dims[d]) continue;
    if (cut.has_value() || piece.dims[d] == 0 || whole.dims[d] % piece.dims[d] != 0) {
      return std::nullopt;
    }
    cut = d;
  }
  return cut;
}

const Instruction* AllReduceIn(const Instruction& fusion) {
  for (const Instruction* i : fusion.called()[0]->PostOrder()) {
    if (i->opcode() == Opcode::kAllReduce) return i;
  }
  return nullptr;
}

// Nothing: `element` is no piece of what `all_reduce` makes of an operand of the fusion.
std::optional<Scattered> ScatteredBy(const Instruction& fusion, const Instruction& all_reduce,
                                     const Instruction* element, int64_t members) {
  const Instruction* cut = Past(element, Opcode::kBitcast);
  if (cut->opcode() != Opcode::kDynamicSlice) return std::nullopt;
  const Instruction* sum = Past(cut->operand(0), Opcode::kBitcast);
  int64_t number = 0;
  if (sum->opcode() == Opcode::kGetTupleElement) {
    number = sum->attrs().tuple_index();
    sum = sum->operand(0);
  }
  if (sum != &all_reduce) return std::nullopt;
  const Instruction* input = Past(all_reduce.operand(number), Opcode::kBitcast);
  const Instruction* pad = input->opcode() == Opcode::kPad ? input : nullptr;
  if (pad != nullptr) input = Past(pad->operand(0), Opcode::kBitcast);
  if (input->opcode() != Opcode::kParameter) return std::nullopt;
  const auto dimension = CutDimension(cut->operand(0)->shape(), cut->shape());
  if (!dimension) return std::nullopt;
  const int64_t parts = cut->operand(0)->shape().dims[*dimension] / cut->shape().dims[*dimension];
  if (parts != members) return std::nullopt;
  const Shape& summed = pad != nullptr ? pad->shape() : input->shape();
  const bool as_it_lies = cut == element && cut->operand(0)->shape().dims == summed.dims;
  return Scattered{fusion.operand(input->attrs().parameter_number()), pad, element->shape(),
                   as_it_lies ? *dimension : -1};
}

// `value` as a vector, or a vector as an array of `shape`: in memory they are the same.
Instruction* Relabel(Instruction* value, Shape shape, Instruction* place, OrderEdit& order) {
  Instruction* bitcast = value->parent()->Add(Opcode::kBitcast, std::move(shape), {value});
  order.Insert(place, bitcast);
  return bitcast;
}

Shape FlatShape(const Shape& shape) {
  Shape flat = hlo::MakeShape(shape.element_type, {shape.ElementCount()});
  flat.layout.memory_space = shape.layout.memory_space;
  return flat;
}

// `value` with the rows that `pad` adds, by a kernel of its own.
Instruction* Padded(Instruction* value, const Instruction& pad, Instruction* place,
                    OrderEdit& order) {
  Computation* computation = value->parent();
  if (value->shape().dims != pad.operand(0)->shape().dims) {
    Shape before = pad.operand(0)->shape();
    before.layout.memory_space = value->shape().layout.memory_space;
    value = Relabel(value, std::move(before), place, order);
  }
  Instruction* zero =
      hlo::AddConstant(computation, value->shape().element_type, 0.0, "padding_value");
  Shape shape = pad.shape();
  shape.layout.memory_space = value->shape().layout.memory_space;
  Instruction* padded =
      computation->Add(Opcode::kPad, std::move(shape), {value, zero}, pad.name(), &pad);
  order.Insert(place, zero);
  order.Insert(place, padded);
  return padded;
}

void Unwrap(Instruction* fusion, const Instruction& all_reduce,
            const std::vector<Scattered>& arrays, OrderEdit& order) {
  Computation* computation = fusion->parent();
  // One reduce-scatter cuts all of its arrays in one dimension; where they differ, they are cut as
  // they lie in memory.
  const bool alike = std::ranges::all_of(arrays, [&](const Scattered& array) {
    return array.dimension >= 0 && array.dimension == arrays[0].dimension;
  });
  std::vector<Instruction*> operands;
  std::vector<Shape> pieces;
  for (const Scattered& array : arrays) {
    Instruction* summed = array.summed;
    if (array.pad != nullptr) summed = Padded(summed, *array.pad, fusion, order);
    operands.push_back(alike ? summed : Relabel(summed, FlatShape(summed->shape()), fusion, order));
    pieces.push_back(alike ? array.piece : FlatShape(array.piece));
  }
  const bool tuple = fusion->shape().IsTuple();
  Instruction* scatter =
      computation->Add(Opcode::kReduceScatter, tuple ? hlo::MakeTupleShape(pieces) : pieces[0],
                       operands, fusion->name());
  scatter->mutable_attrs() = all_reduce.attrs();
  // How it is executed is said of the fusion.
  scatter->mutable_attrs().set_backend_config(fusion->attrs().backend_config());
  *scatter->mutable_attrs().mutable_metadata() = fusion->attrs().metadata();
  scatter->set_called(all_reduce.called());
  hlo::SetDimensions(scatter, {alike ? arrays[0].dimension : 0});
  order.Insert(fusion, scatter);
  fusion->MoveControlTo(scatter, scatter);
  Instruction* whole = scatter;
  if (!alike && tuple) {
    std::vector<Instruction*> elements;
    for (size_t n = 0; n < arrays.size(); ++n) {
      Instruction* element =
          computation->Add(Opcode::kGetTupleElement, pieces[n], {scatter}, "get-tuple-element");
      element->mutable_attrs().set_tuple_index(static_cast<int64_t>(n));
      order.Insert(fusion, element);
      elements.push_back(Relabel(element, arrays[n].piece, fusion, order));
    }
    whole = computation->Add(Opcode::kTuple, fusion->shape(), elements, "tuple");
    order.Insert(fusion, whole);
  } else if (!alike) {
    whole = Relabel(scatter, arrays[0].piece, fusion, order);
  }
  fusion->ReplaceAllUsesWith(whole);
  computation->Remove(fusion);
}

absl::StatusOr<bool> UnwrapScatters(Computation* computation, OrderEdit& order,
                                    const PassContext& context) {
  bool changed = false;
  for (Instruction* fusion : hlo::Walk(computation->PostOrder())) {
    if (fusion->opcode() != Opcode::kFusion) continue;
    const Instruction* all_reduce = AllReduceIn(*fusion);
    if (all_reduce == nullptr) continue;
    const Instruction* root = fusion->called()[0]->root();
    const std::vector<Instruction*> elements = root->opcode() == Opcode::kTuple
                                                   ? root->operands()
                                                   : std::vector{fusion->called()[0]->root()};
    ASSIGN_OR_RETURN(const auto groups,
                     hlo::ReplicaGroups(*all_reduce, context.stated->partitions));
    const auto members = static_cast<int64_t>(groups[0].size());
    std::vector<Scattered> arrays;
    for (const Instruction* element : elements) {
      std::optional<Scattered> array = ScatteredBy(*fusion, *all_reduce, element, members);
      if (!array) {
        return NoRule(
            fmt::format("no rule for {}: it fuses an all-reduce with more than the "
                        "slice of each device",
                        fusion->Describe()));
      }
      arrays.push_back(*std::move(array));
    }
    context.records.Add(reasons::kUnwrapped, fusion->name());
    Unwrap(fusion, *all_reduce, arrays, order);
    changed = true;
  }
  return changed;
}

}  // namespace

absl::StatusOr<bool> UnwrapReduceScatters(hlo::Module& module, const PassContext& context) {
  return EditOrdered(module, [&](Computation* computation, OrderEdit& order) {
    return UnwrapScatters(computation, order, context);
  });
}

}  // namespace tpusim::passes
