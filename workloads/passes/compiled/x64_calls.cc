#include "workloads/passes/compiled/x64_calls.h"

#include <vector>

#include "workloads/hlo/ir/attributes.h"

namespace tpusim::passes {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;
using hlo::PrimitiveType;

bool IsTwoWords(PrimitiveType type) {
  return type == PrimitiveType::kU64 || type == PrimitiveType::kS64;
}

// One elementwise operation of the call's operands.
Instruction* Single(const Instruction& call, Opcode opcode) {
  const std::vector<Instruction*> operands(call.operands().begin(), call.operands().end());
  return call.parent()->Add(opcode, call.shape(), operands, call.name(), &call);
}

// Builds the computation of a fusion, elementwise over the dimensions of the call.
class Fused {
 public:
  explicit Fused(const Instruction& call)
      : call_(call), fused_(call.parent()->parent()->AddComputation("words")) {}

  Instruction* Parameter(int64_t number) {
    return fused_->AddParameter(number, call_.operand(number)->shape(), "word");
  }
  Instruction* Convert(Instruction* value, PrimitiveType type) {
    return fused_->Add(Opcode::kConvert, hlo::MakeShape(type, call_.shape().dims), {value});
  }
  // The value moved by a word.
  Instruction* Shifted(Opcode opcode, Instruction* value) {
    const PrimitiveType type = value->shape().element_type;
    Instruction* bits = fused_->Add(Opcode::kBroadcast, hlo::MakeShape(type, call_.shape().dims),
                                    {hlo::AddIntConstant(fused_, type, hlo::BitWidth(type) / 2)});
    return Binary(opcode, value, bits);
  }
  Instruction* Binary(Opcode opcode, Instruction* a, Instruction* b) {
    return fused_->Add(opcode, a->shape(), {a, b});
  }
  Instruction* Call(Instruction* root) {
    fused_->set_root(root);
    Instruction* fusion = Single(call_, Opcode::kFusion);
    fusion->mutable_attrs().set_fusion_kind("kLoop");
    fusion->set_called({fused_});
    return fusion;
  }

 private:
  const Instruction& call_;
  Computation* const fused_;
};

Instruction* HighWord(const Instruction& call) {
  Fused fused(call);
  Instruction* high = fused.Shifted(Opcode::kShiftRightLogical, fused.Parameter(0));
  return fused.Call(fused.Convert(high, call.shape().element_type));
}

Instruction* Combined(const Instruction& call) {
  const PrimitiveType type = call.shape().element_type;
  Fused fused(call);
  Instruction* low = fused.Convert(fused.Parameter(0), type);
  Instruction* high = fused.Convert(fused.Parameter(1), type);
  return fused.Call(fused.Binary(Opcode::kOr, low, fused.Shifted(Opcode::kShiftLeft, high)));
}

}  // namespace

Instruction* X64Operation(const Instruction& call) {
  if (hlo::IsCallOf(call, "X64Combine") && call.operands().size() == 2) {
    const PrimitiveType type = call.shape().element_type;
    if (type == PrimitiveType::kC64) return Single(call, Opcode::kComplex);
    return IsTwoWords(type) ? Combined(call) : nullptr;
  }
  if (call.operands().size() != 1) return nullptr;
  const PrimitiveType type = call.operand(0)->shape().element_type;
  if (hlo::IsCallOf(call, "X64SplitLow")) {
    if (type == PrimitiveType::kC64) return Single(call, Opcode::kReal);
    return IsTwoWords(type) ? Single(call, Opcode::kConvert) : nullptr;
  }
  if (hlo::IsCallOf(call, "X64SplitHigh")) {
    if (type == PrimitiveType::kC64) return Single(call, Opcode::kImag);
    return IsTwoWords(type) ? HighWord(call) : nullptr;
  }
  return nullptr;
}

}  // namespace tpusim::passes
