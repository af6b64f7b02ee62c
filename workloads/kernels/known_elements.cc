#include "workloads/kernels/known_elements.h"

#include <algorithm>
#include <utility>

#include "workloads/hlo/analysis/async.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/rules/integer_arithmetic.h"
#include "workloads/hlo/rules/scalar_value.h"
#include "workloads/kernels/known_moves.h"
#include "workloads/kernels/limits.h"

namespace tpusim::kernels {
namespace {

using hlo::Instruction;
using hlo::Opcode;
using hlo::Shape;
using Elements = std::optional<WholeNumbers>;

// Whether `count` is more than a limit allows.
bool Beyond(const Limit& limit, int64_t count) {
  if (count <= limit.most()) return false;
  limit.Reached();
  return true;
}

class Evaluation {
 public:
  Evaluation(int64_t partition, const hlo::CallGraph& calls)
      : partition_(partition), calls_(calls) {}

  Elements Of(const Instruction& i) {
    if (!i.shape().IsArray() || !hlo::IsWholeNumber(i.shape().element_type)) return std::nullopt;
    if (Beyond(limits::kTableElements, i.shape().ElementCount()) ||
        Beyond(limits::kTableDepth, depth_ + 1) || Beyond(limits::kTableOperations, ++steps_)) {
      return std::nullopt;
    }
    const bool constant = i.opcode() == Opcode::kConstant;
    if (const auto scalar =
            i.shape().rank() == 0 && !constant ? hlo::ScalarValue(i, partition_) : std::nullopt) {
      everywhere_ = false;  // For all we care: few tables are cut out by numbers.
      return std::vector<int64_t>{*scalar};
    }
    ++depth_;
    Elements elements = Compute(i);
    --depth_;
    return elements;
  }

  bool everywhere() const { return everywhere_; }

 private:
  Elements Compute(const Instruction& i) {
    const Shape& shape = i.shape();
    switch (i.opcode()) {
      case Opcode::kConstant:
        return hlo::IntElements(i.attrs().literal());
      case Opcode::kReshape:
      case Opcode::kBitcast:
        return i.operand(0)->shape().ElementCount() == shape.ElementCount() ? Of(*i.operand(0))
                                                                            : std::nullopt;
      case Opcode::kCopy:
      case Opcode::kOptBarrier:
        return Of(*i.operand(0));
      case Opcode::kCopyDone:
        return Of(*hlo::StartOf(i).operand(0));
      case Opcode::kFusion:
        return OfFusion(i);
      case Opcode::kIota: {
        const auto axis = static_cast<size_t>(hlo::OnlyDimension(i));
        std::vector<int64_t> elements;
        ForEachPlace(shape, [&](const auto& place) { elements.push_back(place[axis]); });
        return elements;
      }
      case Opcode::kBroadcast: {
        const std::vector<int64_t> dimensions = hlo::Dimensions(i);
        return Picked(i, [&](const auto& place, auto* from) {
          for (size_t d = 0; d < dimensions.size(); ++d) {
            (*from)[d] = place[static_cast<size_t>(dimensions[d])];
          }
        });
      }
      case Opcode::kSlice: {
        const std::vector<hlo::SliceDim> slice = hlo::GetSlice(i);
        return Picked(i, [&](const auto& place, auto* from) {
          for (size_t d = 0; d < slice.size(); ++d) {
            (*from)[d] = slice[d].start + place[d] * slice[d].stride;
          }
        });
      }
      case Opcode::kDynamicSlice:
        return DynamicSlice(i);
      case Opcode::kConcatenate:
        return Concatenated(i);
      case Opcode::kGetTupleElement:
        return OfTuple(*i.operand(0), i.attrs().tuple_index());
      case Opcode::kParameter:
        return OfParameter(i);
      default:
        return hlo::IsElementwise(i) && i.operands().size() <= 2 ? Elementwise(i) : Result(i, 0);
    }
  }

  // Elements of the operand, from the places that `from` gives.
  template <typename From>
  Elements Picked(const Instruction& i, const From& from) {
    const Elements operand = Of(*i.operand(0));
    if (!operand) return std::nullopt;
    const Shape& shape = i.operand(0)->shape();
    std::vector<int64_t> at(shape.dims.size(), 0), elements;
    ForEachPlace(i.shape(), [&](const auto& place) {
      from(place, &at);
      elements.push_back((*operand)[IndexOf(shape, at)]);
    });
    return elements;
  }

  // Slices an array. The begin may be data, if all slices are the same: rows of a table that a loop
  // goes through, one for each of its layers.
  Elements DynamicSlice(const Instruction& i) {
    const Shape& shape = i.operand(0)->shape();
    std::vector<int64_t> starts;
    std::vector<size_t> open;
    for (size_t d = 0; d < shape.dims.size(); ++d) {
      const Elements start = Of(*i.operand(d + 1));
      const int64_t last = shape.dims[d] - i.shape().dims[d];
      starts.push_back(start ? std::clamp<int64_t>((*start)[0], 0, last) : 0);
      if (!start && last > 0) open.push_back(d);
    }
    if (!open.empty()) {
      const Elements whole = Of(*i.operand(0));
      if (!whole) return std::nullopt;
      bool alike = true;
      size_t n = 0;
      ForEachPlace(shape, [&](std::vector<int64_t> place) {
        for (const size_t d : open) place[d] = 0;
        alike = alike && (*whole)[n++] == (*whole)[IndexOf(shape, place)];
      });
      if (!alike) return std::nullopt;
    }
    return Picked(i, [&](const auto& place, auto* from) {
      for (size_t d = 0; d < starts.size(); ++d) (*from)[d] = starts[d] + place[d];
    });
  }

  Elements Concatenated(const Instruction& i) {
    const auto axis = static_cast<size_t>(hlo::OnlyDimension(i));
    std::vector<int64_t> elements(static_cast<size_t>(i.shape().ElementCount()));
    int64_t before = 0;
    for (const Instruction* operand : i.operands()) {
      const Elements part = Of(*operand);
      if (!part) return std::nullopt;
      size_t n = 0;
      ForEachPlace(operand->shape(), [&](std::vector<int64_t> place) {
        place[axis] += before;
        elements[IndexOf(i.shape(), place)] = (*part)[n++];
      });
      before += operand->shape().dims[axis];
    }
    return elements;
  }

  // One of the results of an operation that moves or combines what is known.
  Elements Result(const Instruction& i, int64_t number) {
    std::vector<WholeNumbers> operands;
    for (const Instruction* operand : i.operands()) {
      Elements known = Of(*operand);
      if (!known) return std::nullopt;
      operands.push_back(*std::move(known));
    }
    auto results = Moved(i, operands);
    if (!results || static_cast<size_t>(number) >= results->size()) return std::nullopt;
    return std::move((*results)[static_cast<size_t>(number)]);
  }

  Elements Elementwise(const Instruction& i) {
    if (i.operands().empty() || i.operands().size() > 2) return std::nullopt;
    const Elements a = Of(*i.operand(0));
    const Elements b = a && i.operands().size() == 2 ? Of(*i.operand(1)) : a;
    if (!a || !b) return std::nullopt;
    std::vector<int64_t> elements;
    for (size_t n = 0; n < a->size() && n < b->size(); ++n) {
      const auto value = hlo::EvaluateInteger(i, (*a)[n], (*b)[n]);
      if (!value) return std::nullopt;
      elements.push_back(*value);
    }
    return elements;
  }

  // Its root, with its operands as parameters.
  Elements OfFusion(const Instruction& fusion) {
    fusions_.push_back(&fusion);
    Elements elements = Of(*fusion.called()[0]->root());
    fusions_.pop_back();
    return elements;
  }

  Elements OfParameter(const Instruction& parameter) {
    if (!fusions_.empty() && parameter.parent() == fusions_.back()->called()[0]) {
      const Instruction& fusion = *fusions_.back();
      fusions_.pop_back();  // What it reads is outside.
      const auto number = static_cast<size_t>(parameter.attrs().parameter_number());
      Elements elements = Of(*fusion.operand(number));
      fusions_.push_back(&fusion);
      return elements;
    }
    const Instruction* caller = OnlyCallerOf(parameter);
    if (caller == nullptr || caller->opcode() != Opcode::kCall) return std::nullopt;
    return Of(*caller->operand(static_cast<size_t>(parameter.attrs().parameter_number())));
  }

  // Element `index` of what a loop starts with, if every pass leaves it unchanged.
  Elements OfLoop(const Instruction& loop, int64_t index) {
    const Instruction* root = loop.called()[0]->root();
    if (root->opcode() != Opcode::kTuple) return std::nullopt;
    const Instruction* next = root->operand(static_cast<size_t>(index));
    if (next->opcode() != Opcode::kGetTupleElement ||
        next->operand(0)->opcode() != Opcode::kParameter || next->attrs().tuple_index() != index) {
      return std::nullopt;
    }
    ++depth_;
    Elements elements = OfTuple(*loop.operand(0), index);
    --depth_;
    return elements;
  }

  // Returns what a loop carries unchanged from pass to pass; what a call gets.
  Elements OfTuple(const Instruction& tuple, int64_t index) {
    if (Beyond(limits::kTableDepth, depth_ + 1)) return std::nullopt;
    if (tuple.opcode() == Opcode::kTuple) return Of(*tuple.operand(static_cast<size_t>(index)));
    if (tuple.opcode() == Opcode::kOptBarrier) return OfTuple(*tuple.operand(0), index);
    if (tuple.opcode() == Opcode::kWhile) return OfLoop(tuple, index);
    if (tuple.opcode() == Opcode::kReduce || tuple.opcode() == Opcode::kSort) {
      return Result(tuple, index);
    }
    if (tuple.opcode() != Opcode::kParameter) return std::nullopt;
    const Instruction* caller = OnlyCallerOf(tuple);
    if (caller == nullptr) return std::nullopt;
    if (caller->opcode() == Opcode::kCall) {
      return OfTuple(*caller->operand(static_cast<size_t>(tuple.attrs().parameter_number())),
                     index);
    }
    const bool loop =
        caller->opcode() == Opcode::kWhile && calls_.LoopOf(*tuple.parent()) == caller;
    return loop ? OfLoop(*caller, index) : std::nullopt;
  }

  const Instruction* OnlyCallerOf(const Instruction& parameter) {
    if (!calls_.IsControl(*parameter.parent())) return nullptr;
    const std::vector<Instruction*>& callers = calls_.CallersOf(*parameter.parent());
    return callers.size() == 1 ? callers[0] : nullptr;
  }

  int64_t partition_;
  bool everywhere_ = true;
  const hlo::CallGraph& calls_;
  std::vector<const Instruction*> fusions_;  // being evaluated, the outermost first
  int depth_ = 0, steps_ = 0;
};

}  // namespace

std::optional<Known> KnownElements(const Instruction& value, int64_t partition,
                                   const hlo::CallGraph& calls) {
  Evaluation evaluation(partition, calls);
  Elements elements = evaluation.Of(value);
  if (elements && static_cast<int64_t>(elements->size()) != value.shape().ElementCount()) {
    return std::nullopt;
  }
  if (!elements) return std::nullopt;
  return Known{*std::move(elements), evaluation.everywhere()};
}

}  // namespace tpusim::kernels
