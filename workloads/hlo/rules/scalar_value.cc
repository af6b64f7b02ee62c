#include "workloads/hlo/rules/scalar_value.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/rules/integer_arithmetic.h"
#include "workloads/hlo/rules/limits.h"

namespace tpusim::hlo {
namespace {

using Value = std::optional<int64_t>;

class Evaluator {
 public:
  explicit Evaluator(int64_t partition) : partition_(partition) {}

  // The only element of `i`, or element `index` of it.
  Value Of(const Instruction& i, int64_t index = 0) {
    if (!i.shape().IsArray() || IsTooLong()) return std::nullopt;
    ++depth_;
    const Value value = Compute(i, index);
    --depth_;
    return value;
  }

 private:
  // Expressions beyond the limits are data; each is counted once.
  bool IsTooLong() {
    const Limit& limit = depth_ >= limits::kValueDepth.most() ? limits::kValueDepth
                                                              : limits::kValueSteps;
    if (&limit == &limits::kValueSteps && ++steps_ <= limit.most()) return false;
    if (!std::exchange(too_long_, true)) limit.Reached();
    return true;
  }

  Value Compute(const Instruction& i, int64_t index) {
    switch (i.opcode()) {
      case Opcode::kPartitionId:
        return partition_;
      case Opcode::kReplicaId:
        return 0;
      case Opcode::kConstant: {
        const auto elements = IntElements(i.attrs().literal());
        if (!elements || index >= static_cast<int64_t>(elements->size())) return std::nullopt;
        return (*elements)[static_cast<size_t>(index)];
      }
      case Opcode::kIota:
        return i.shape().rank() == 1 ? Value(index) : std::nullopt;
      case Opcode::kBroadcast:
        return i.operand(0)->shape().ElementCount() == 1 ? Of(*i.operand(0)) : std::nullopt;
      case Opcode::kReshape:
      case Opcode::kBitcast:
      case Opcode::kCopy:
      case Opcode::kOptBarrier:
        return Of(*i.operand(0), index);
      case Opcode::kSlice:
        if (i.shape().rank() != 1) return std::nullopt;
        return Of(*i.operand(0), GetSlice(i)[0].start + index * GetSlice(i)[0].stride);
      case Opcode::kDynamicSlice: {
        if (i.shape().rank() != 1) return std::nullopt;
        const Value start = Of(*i.operand(1));
        if (!start) return start;
        const int64_t most = i.operand(0)->shape().dims[0] - i.shape().dims[0];
        return Of(*i.operand(0), std::clamp<int64_t>(*start, 0, most) + index);
      }
      case Opcode::kFusion: {
        callers_.push_back(&i);
        const Value value = Of(*i.called()[0]->root(), index);
        callers_.pop_back();
        return value;
      }
      case Opcode::kParameter: {
        if (callers_.empty() || callers_.back()->called()[0] != i.parent()) return std::nullopt;
        const Instruction* caller = callers_.back();
        callers_.pop_back();
        const Value value = Of(*caller->operand(i.attrs().parameter_number()), index);
        callers_.push_back(caller);
        return value;
      }
      case Opcode::kSelect: {
        const Value choice = Of(*i.operand(0), i.operand(0)->shape().IsScalar() ? 0 : index);
        if (!choice) return choice;
        return Of(*i.operand(*choice != 0 ? 1 : 2), index);
      }
      default:
        return Elementwise(i, index);
    }
  }

  Value Elementwise(const Instruction& i, int64_t index) {
    const size_t operands = i.operands().size();
    if (!IsElementwise(i.opcode()) || operands == 0 || operands > 2) return std::nullopt;
    for (const Instruction* operand : i.operands()) {
      if (!IsWholeNumber(operand->shape().element_type)) return std::nullopt;
    }
    const Value a = Of(*i.operand(0), index);
    if (!a || operands == 1) return a ? EvaluateInteger(i, *a, *a) : a;
    const Value b = Of(*i.operand(1), index);
    return b ? EvaluateInteger(i, *a, *b) : b;
  }

  int64_t partition_;
  int64_t depth_ = 0, steps_ = 0;
  bool too_long_ = false;
  std::vector<const Instruction*> callers_;  // fusions entered
};

}  // namespace

std::optional<int64_t> ScalarValue(const Instruction& value, int64_t partition) {
  const auto type = value.shape().element_type;
  if (!value.shape().IsArray() || !IsWholeNumber(type)) return std::nullopt;
  return Evaluator(partition).Of(value);
}

}  // namespace tpusim::hlo
