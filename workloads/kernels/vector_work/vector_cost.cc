#include "workloads/kernels/vector_work/vector_cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "configs/status_macros.h"
#include "configs/vector_register.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/kernels/opaque/custom_cost.h"
#include "workloads/kernels/view/kernel_view.h"
#include "workloads/kernels/view/product.h"

namespace tpusim::kernels {

using hlo::Instruction;
using hlo::Opcode;

VectorWork& VectorWork::operator+=(const VectorWork& other) {
  valu += other.valu;
  eup += other.eup;
  xlu += other.xlu;
  load += other.load;
  store += other.store;
  scalar += other.scalar;
  latency += other.latency;
  return *this;
}

VectorWork VectorWork::operator*(double times) const {
  VectorWork work = *this;
  work.valu *= times;
  work.eup *= times;
  work.xlu *= times;
  work.load *= times;
  work.store *= times;
  work.scalar *= times;
  work.latency *= times;
  return work;
}

isa::Block BlockOf(const VectorWork& work, double steps) {
  const auto per_step = [steps](double total) {
    return static_cast<int64_t>(std::ceil(total / steps - 1e-9));  // number: rounding
  };
  isa::Block block;
  block.valu = per_step(work.valu);
  block.eup = per_step(work.eup);
  block.xlu = per_step(work.xlu);
  block.load = per_step(work.load);
  block.store = per_step(work.store);
  block.scalar = Cycles(per_step(work.scalar));
  block.latency = Cycles(per_step(work.latency));
  return block;
}

VectorWork RandomWork(const Instruction& generator, const target::Target& target) {
  const bool threefry = generator.attrs().rng_algorithm() == hlo::pb::RNG_THREE_FRY;
  const configs::InstructionCost& each =
      target.instructions().At(threefry ? "threefry" : "philox", "u32");
  const int64_t one = configs::RegisterBytes(target.chip().vpu);
  VectorWork work;
  for (const hlo::Shape* leaf : hlo::Leaves(generator.shape())) {
    work.valu += each.valu * static_cast<double>(CeilDiv(leaf->ByteSize().value(), one));
  }
  return work;
}

namespace {

// Rows divided by a number each, as a softmax ends: its reciprocal is taken once per row, and what
// is left of the division is a product (schedules of the TPU compiler for v6e: 256 vrcp for 1024
// registers of four columns each).
bool DividesBySpread(const Instruction& i) {
  return i.opcode() == Opcode::kDivide && i.operand(1)->opcode() == Opcode::kBroadcast &&
         hlo::IsFloating(i.shape().element_type);
}

}  // namespace

absl::StatusOr<VectorWork> VectorWorkOf(const Instruction& i, const target::Target& target) {
  if (IsRelayout(i)) return MoveWork(i, target);
  if (const auto cost = ElementwiseCost(i, target)) {
    const auto registers = static_cast<double>(VectorRegisters(target, i.shape()));
    if (!DividesBySpread(i)) return *cost * registers;
    VectorWork work = *cost * SpreadRegisters(*i.operand(1), target);
    work.valu += registers;
    return work;
  }
  switch (i.opcode()) {
    case Opcode::kConstant:
    case Opcode::kBitcast:
    case Opcode::kParameter:
    case Opcode::kTuple:
    case Opcode::kGetTupleElement:
    case Opcode::kOptBarrier:
      return VectorWork{};
    case Opcode::kDot:
    case Opcode::kRaggedDot:
    case Opcode::kConvolution:
      // On the arrays, the vector work of a product is counted with it.
      return RunsOnVectorUnits(i) ? MultiplyAddWork(i, target) : VectorWork{};
    case Opcode::kIota: {
      VectorWork work;
      work.valu = static_cast<double>(VectorRegisters(target, i.shape())) *
                  target.instructions().At("lane-numbers").valu;
      return work;
    }
    case Opcode::kBroadcast:
    case Opcode::kSlice:
    case Opcode::kDynamicSlice:
    case Opcode::kDynamicUpdateSlice:
    case Opcode::kPad:
    case Opcode::kConcatenate:
    case Opcode::kReshape:
    case Opcode::kTranspose:
    case Opcode::kReverse:
      return MoveWork(i, target);
    case Opcode::kMap: {
      ASSIGN_OR_RETURN(const VectorWork call, CallCost(*i.called()[0], target));
      return call * static_cast<double>(VectorRegisters(target, i.shape()));
    }
    case Opcode::kFusion: {
      // A fusion inside a fusion.
      VectorWork work;
      for (const Instruction* inner : i.called()[0]->PostOrder()) {
        ASSIGN_OR_RETURN(const VectorWork one, VectorWorkOf(*inner, target));
        work += one;
      }
      return work;
    }
    case Opcode::kReduce:
      return ReduceWork(i, target);
    case Opcode::kReduceWindow:
      return ReduceWindowWork(i, target);
    case Opcode::kSelectAndScatter:
      return SelectAndScatterWork(i, target);
    case Opcode::kGather:
      return GatherWork(i, target);
    case Opcode::kScatter:
      return ScatterWork(i, target);
    case Opcode::kSort:
      return SortWork(i, target);
    case Opcode::kTopk:
      return TopKWork(i, i.attrs().k(), target);
    case Opcode::kCustomCall:
      // Where a result is to lie; what writes it costs something.
      if (hlo::IsCallOf(i, hlo::kAllocateBuffer)) return VectorWork();
      if (IsPartialReduceCall(i)) {
        // Compare, keep the better value and its position.
        VectorWork work;
        // number: compare, keep the value, keep its position
        work.valu = 3 * static_cast<double>(VectorRegisters(target, i.operand(0)->shape()));
        return work;
      }
      if (!IsTopKCall(i)) break;
      return TopKWork(i, hlo::Leaves(i.shape())[0]->dims.back(), target);
    case Opcode::kRngBitGenerator:
      return RandomWork(i, target);
    default:
      break;
  }
  return NoRule(fmt::format("no kernel for {}: op '{}' has no vector cost rule", i.Describe(),
                            hlo::OpcodeName(i.opcode())));
}

bool IsRelayout(const Instruction& i) {
  return i.opcode() == Opcode::kCopy && i.shape().IsArray() &&
         !hlo::SameOrder(i.shape(), i.operand(0)->shape());
}

double PackedShare(const hlo::Shape& shape) {
  const int64_t bits = hlo::BitWidth(shape.element_type);
  // number: bits of a type
  return bits < 32 ? std::max<double>(1, static_cast<double>(bits)) / 32 : 1;
}

double RepackWork(const hlo::Shape& shape, const target::Target& target) {
  const int64_t bits = hlo::BitWidth(shape.element_type);
  if (bits >= 32 || !shape.IsArray()) return 0;  // number: bits of a type
  const bool f16 = shape.element_type == hlo::PrimitiveType::kF16;
  const double rounding = f16 ? target.instructions().At("round-to-narrow", "f16").valu : 0;
  return (1 - PackedShare(shape) + rounding) * static_cast<double>(VectorRegisters(target, shape));
}

}  // namespace tpusim::kernels
