#include "workloads/hlo/analysis/known_values.h"

#include <algorithm>
#include <utility>

#include "workloads/hlo/analysis/limits.h"
#include "workloads/hlo/analysis/underlying.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/rules/integer_arithmetic.h"

namespace tpusim::hlo {
namespace {

using Elements = std::optional<Integers>;

// Whether `count` is more than a limit allows.
bool Beyond(const Limit& limit, int64_t count) {
  if (count <= limit.most()) return false;
  limit.Reached();
  return true;
}

}  // namespace

class IntegerEvaluator {
 public:
  IntegerEvaluator(const KnownValues& values, KnownValues::Partition partition)
      : values_(values), partition_(partition) {}

  Elements Of(const Instruction& i) {
    if (!i.shape().IsArray() || !IsWholeNumber(i.shape().element_type)) return std::nullopt;
    if (Beyond(limits::kKnownElements, i.shape().ElementCount()) ||
        Beyond(limits::kKnownDepth, depth_ + 1) || Beyond(limits::kKnownOperations, ++steps_)) {
      return std::nullopt;
    }
    ++depth_;
    Elements elements = Compute(i);
    --depth_;
    return elements;
  }

  bool everywhere() const { return everywhere_; }

 private:
  Elements Compute(const Instruction& i) {
    switch (i.opcode()) {
      case Opcode::kConstant:
        return IntElements(i.attrs().literal());
      case Opcode::kPartitionId:
        everywhere_ = false;
        return partition_ ? Elements(Integers{*partition_}) : std::nullopt;
      case Opcode::kReplicaId:  // a program has one replica of many partitions
        return Integers{0};
      case Opcode::kBitcast:
        return i.operand(0)->shape().ElementCount() == i.shape().ElementCount() ? Of(*i.operand(0))
                                                                                : std::nullopt;
      case Opcode::kFusion:
        return OfFusion(i);
      case Opcode::kSelect:
        return OfSelect(i);
      case Opcode::kDynamicSlice:
        return OfDynamicSlice(i);
      case Opcode::kParameter:
        if (!fusions_.empty() && i.parent() == fusions_.back()->called()[0]) return OfParameter(i);
        break;
      default:
        break;
    }
    const auto caller_of = [&](const Computation& called) {
      return values_.Calls().OnlyCallerOf(called);
    };
    if (const Instruction* value = Underlying(&i, caller_of); value != &i) return Of(*value);
    if (i.opcode() == Opcode::kGetTupleElement) {
      const Instruction& made = *i.operand(0);
      const bool several = made.opcode() == Opcode::kReduce || made.opcode() == Opcode::kSort;
      return several ? Result(made, i.attrs().tuple_index()) : std::nullopt;
    }
    return i.opcode() == Opcode::kParameter ? std::nullopt : Result(i, 0);
  }

  // Result `number` of an operation on operands that must all be known.
  Elements Result(const Instruction& i, int64_t number) {
    std::vector<Integers> operands;
    for (const Instruction* operand : i.operands()) {
      Elements known = Of(*operand);
      if (!known) return std::nullopt;
      operands.push_back(*std::move(known));
    }
    auto results = EvaluateIntegers(i, operands);
    if (!results || number >= std::ssize(*results)) return std::nullopt;
    return std::move((*results)[static_cast<size_t>(number)]);
  }

  // Only the array that is taken has to be known.
  Elements OfSelect(const Instruction& i) {
    const Elements choice = Of(*i.operand(0));
    if (!choice || choice->empty()) return std::nullopt;
    const auto differs = [&](int64_t c) { return (c != 0) != (choice->front() != 0); };
    if (std::ranges::any_of(*choice, differs)) return Result(i, 0);
    return Of(*i.operand(choice->front() != 0 ? 1 : 2));
  }

  // The start of a slice may be data where the array is the same all along that dimension: rows of
  // a table that a loop goes through, one for each of its layers.
  Elements OfDynamicSlice(const Instruction& i) {
    const Shape& shape = i.operand(0)->shape();
    if (std::ssize(i.operands()) != shape.rank() + 1) return std::nullopt;
    std::vector<Integers> operands(1);
    std::vector<size_t> open;
    for (size_t d = 0; d < shape.dims.size(); ++d) {
      const Elements start = Of(*i.operand(d + 1));
      operands.push_back(start ? *start : Integers{0});
      if (!start && shape.dims[d] > i.shape().dims[d]) open.push_back(d);
    }
    const Elements whole = Of(*i.operand(0));
    if (!whole) return std::nullopt;
    bool alike = true;
    size_t n = 0;
    if (!open.empty()) {
      ForEachIndex(shape, [&](Integers index) {
        for (const size_t d : open) index[d] = 0;
        alike = alike && (*whole)[n++] == (*whole)[FlatIndex(shape, index)];
      });
    }
    if (!alike) return std::nullopt;
    operands[0] = *whole;
    return std::move(EvaluateIntegers(i, operands)->front());
  }

  // Evaluates the root, in which the operands of the fusion are parameters.
  Elements OfFusion(const Instruction& fusion) {
    fusions_.push_back(&fusion);
    Elements elements = Of(*fusion.called()[0]->root());
    fusions_.pop_back();
    return elements;
  }

  Elements OfParameter(const Instruction& parameter) {
    const Instruction& fusion = *fusions_.back();
    fusions_.pop_back();  // its operands are outside
    const auto number = static_cast<size_t>(parameter.attrs().parameter_number());
    Elements elements = Of(*fusion.operand(number));
    fusions_.push_back(&fusion);
    return elements;
  }

  const KnownValues& values_;
  const KnownValues::Partition partition_;
  bool everywhere_ = true;
  std::vector<const Instruction*> fusions_;  // being evaluated, the outermost first
  int64_t depth_ = 0, steps_ = 0;
};

const CallGraph& KnownValues::Calls() const {
  if (!calls_) calls_.emplace(module_);
  return *calls_;
}

std::optional<KnownArray> KnownValues::ArrayOf(const Instruction& value,
                                               Partition partition) const {
  IntegerEvaluator evaluator(*this, partition);
  Elements elements = evaluator.Of(value);
  if (!elements || std::ssize(*elements) != value.shape().ElementCount()) return std::nullopt;
  return KnownArray{*std::move(elements), evaluator.everywhere()};
}

std::optional<int64_t> KnownValues::ScalarOf(const Instruction& value, Partition partition) const {
  if (!value.shape().IsArray() || value.shape().ElementCount() != 1) return std::nullopt;
  const std::optional<KnownArray> known = ArrayOf(value, partition);
  return known ? std::optional(known->elements[0]) : std::nullopt;
}

}  // namespace tpusim::hlo
