#include "workloads/hlo/rules/op_rules.h"

#include <algorithm>
#include <array>

#include "fmt/format.h"

namespace tpusim::hlo {
namespace {

using cost_rules::CalleeCosts;
using cost_rules::Full;
using cost_rules::Moves;
using shape_rules::In;
using shape_rules::InRange;
using ShapeResult = shape_rules::Result;
using CostResult = cost_rules::Result;

ShapeResult TupleOfOperands(const Instruction& i) {
  return MakeTupleShape(shape_rules::OperandShapes(i, i.operands().size()));
}

ShapeResult TupleElement(const Instruction& i) {
  const int64_t index = i.attrs().tuple_index();
  TPUSIM_REQUIRE(In(i, 0).IsTuple() && InRange(index, static_cast<int64_t>(In(i, 0).tuple.size())),
                 "index {} of {}", index, In(i, 0).ToString());
  return In(i, 0).tuple[index];
}

ShapeResult Constant(const Instruction& i) {
  // Elided literals are legal.
  if (!i.attrs().has_literal()) return i.shape();
  const pb::ShapeProto& literal = i.attrs().literal().shape();
  TPUSIM_REQUIRE(
      static_cast<int>(literal.element_type()) == static_cast<int>(shape_rules::OwnType(i)) &&
          std::equal(literal.dimensions().begin(), literal.dimensions().end(),
                     i.shape().dims.begin(), i.shape().dims.end()),
      "the literal has another shape than {}", i.shape().ToString());
  return i.shape();
}

ShapeResult Own(const Instruction& i) { return i.shape(); }
ShapeResult First(const Instruction& i) { return In(i, 0); }
ShapeResult Callee(const Instruction& i) { return i.called()[0]->root()->shape(); }
ShapeResult DeviceNumber(const Instruction&) { return MakeScalarShape(PrimitiveType::kU32); }

CostResult Free(const Instruction&, const CalleeCosts&) { return Cost{}; }
CostResult FullBytes(const Instruction& i, const CalleeCosts&) { return Full(i); }
CostResult MovesResult(const Instruction& i, const CalleeCosts&) {
  return Moves(i.shape().ByteSize());
}
CostResult MovesUpdate(const Instruction& i, const CalleeCosts&) {
  return Moves(i.operand(1)->shape().ByteSize());
}
CostResult MovesOperand(const Instruction& i, const CalleeCosts&) {
  return Moves(i.operand(0)->shape().ByteSize());
}

constexpr bool kArrays = true, kAny = false, kStated = true;

struct OpRow {
  Opcode opcode;
  OpRules rules;
};

// The rules by opcode name. Elementwise opcodes are flagged as such in the opcode table and need no
// line. Of an asynchronous pair the start has the cost. Shapes are what the instruction says where
// nothing implies them (parameter, custom-call), where the verifier has compared them with the
// branches (conditional), and without a line: there is no rule yet, which a cost or a sharding rule
// says when it is needed.
const OpRow kOpRows[] = {
    {Opcode::kAddDependency, {First, kAny, Free}},
    {Opcode::kAfterAll, {shape_rules::AfterAll, kAny, Free}},
    {Opcode::kAllGather, {shape_rules::AllGather, kAny, FullBytes}},
    {Opcode::kAllGatherDone, {shape_rules::DoneOfSecond, kAny, Free}},
    {Opcode::kAllGatherStart, {shape_rules::AllGatherStart, kAny, cost_rules::CollectiveStart}},
    {Opcode::kAllReduce, {shape_rules::AllReduce, kAny, cost_rules::AllReduce}},
    {Opcode::kAllReduceDone, {shape_rules::AllReduceDone, kAny, Free}},
    {Opcode::kAllReduceStart, {shape_rules::AllReduceStart, kAny, cost_rules::AllReduce}},
    {Opcode::kAllToAll, {shape_rules::AllToAll, kAny, FullBytes}},
    {Opcode::kAsyncDone, {shape_rules::DoneOfSecond, kAny, Free}},
    {Opcode::kAsyncStart, {shape_rules::AsyncStart, kAny, cost_rules::SumOfCalled, kStated}},
    {Opcode::kAsyncUpdate, {shape_rules::AsyncUpdate, kAny, Free, kStated}},
    {Opcode::kBitcast, {shape_rules::Bitcast, kAny, Free, kStated}},
    {Opcode::kBitcastConvert, {shape_rules::BitcastConvert, kArrays, FullBytes, kStated}},
    {Opcode::kBroadcast, {shape_rules::Broadcast, kArrays, FullBytes, kStated}},
    {Opcode::kCall, {Callee, kAny, cost_rules::SumOfCalled}},
    {Opcode::kCholesky, {shape_rules::Cholesky, kArrays, cost_rules::Cholesky}},
    {Opcode::kCollectiveBroadcast, {shape_rules::SameAsOperands, kAny, FullBytes}},
    {Opcode::kCollectivePermute,
     {shape_rules::CollectivePermute, kAny, cost_rules::InPlacePermute}},
    {Opcode::kCollectivePermuteDone, {shape_rules::DoneOfSecond, kAny, Free}},
    {Opcode::kCollectivePermuteStart,
     {shape_rules::CollectivePermuteStart, kAny, cost_rules::CollectiveStart}},
    {Opcode::kConcatenate, {shape_rules::Concatenate, kArrays, FullBytes}},
    {Opcode::kConditional, {Own, kAny, cost_rules::Conditional}},
    {Opcode::kConstant, {Constant, kAny, Free, kStated}},
    {Opcode::kConvolution, {shape_rules::Convolution, kArrays, cost_rules::Convolution}},
    {Opcode::kCopy, {First, kAny, FullBytes}},
    {Opcode::kCopyDone, {shape_rules::CopyDone, kAny, Free}},
    {Opcode::kCopyStart, {shape_rules::CopyStart, kAny, MovesOperand}},
    {Opcode::kCustomCall, {Own, kAny, cost_rules::CustomCall, kStated}},
    {Opcode::kDomain, {First, kAny, Free}},
    {Opcode::kDot, {shape_rules::Dot, kArrays, cost_rules::Dot}},
    {Opcode::kDynamicSlice, {shape_rules::DynamicSlice, kArrays, MovesResult}},
    {Opcode::kDynamicUpdateSlice, {shape_rules::DynamicUpdateSlice, kArrays, MovesUpdate}},
    {Opcode::kFft, {shape_rules::Fft, kArrays, cost_rules::Fft}},
    {Opcode::kFusion, {Callee, kAny, cost_rules::Fusion}},
    {Opcode::kGather, {shape_rules::Gather, kArrays, cost_rules::Gather}},
    {Opcode::kGetDimensionSize, {shape_rules::GetDimensionSize, kArrays, Free}},
    {Opcode::kGetTupleElement, {TupleElement, kAny, Free}},
    {Opcode::kInfeed, {shape_rules::Infeed, kAny, cost_rules::Infeed, kStated}},
    {Opcode::kIota, {shape_rules::Iota, kAny, FullBytes, kStated}},
    {Opcode::kMap, {shape_rules::Map, kArrays, cost_rules::Map}},
    {Opcode::kOptBarrier, {First, kAny, Free}},
    {Opcode::kOutfeed, {shape_rules::Outfeed, kAny, cost_rules::Outfeed}},
    {Opcode::kPad, {shape_rules::Pad, kArrays, FullBytes}},
    {Opcode::kParameter, {Own, kAny, Free, kStated}},
    {Opcode::kPartitionId, {DeviceNumber, kAny, Free}},
    {Opcode::kRaggedAllToAll, {shape_rules::RaggedAllToAll, kArrays, cost_rules::RaggedAllToAll}},
    {Opcode::kRaggedDot, {shape_rules::RaggedDot, kArrays, cost_rules::RaggedDot}},
    {Opcode::kRecv, {shape_rules::Recv, kAny, cost_rules::Recv, kStated}},
    {Opcode::kRecvDone, {shape_rules::RecvDone, kAny, Free}},
    {Opcode::kReduce, {shape_rules::Reduce, kArrays, cost_rules::Reduce}},
    {Opcode::kReduceScatter, {shape_rules::ReduceScatter, kAny, cost_rules::ReduceScatter}},
    {Opcode::kReduceWindow, {shape_rules::ReduceWindow, kArrays, cost_rules::ReduceWindow}},
    {Opcode::kReplicaId, {DeviceNumber, kAny, Free}},
    {Opcode::kReshape, {shape_rules::Reshape, kArrays, FullBytes, kStated}},
    {Opcode::kReverse, {shape_rules::Reverse, kArrays, FullBytes}},
    {Opcode::kRng, {shape_rules::Rng, kArrays, cost_rules::Rng, kStated}},
    {Opcode::kRngBitGenerator,
     {shape_rules::RngBitGenerator, kArrays, cost_rules::RngBitGenerator, kStated}},
    {Opcode::kRngGetAndUpdateState, {shape_rules::RngState, kAny, cost_rules::RngState, kStated}},
    {Opcode::kScaledDot, {shape_rules::ScaledDot, kArrays, cost_rules::ScaledDot}},
    {Opcode::kScatter, {shape_rules::Scatter, kArrays, cost_rules::Scatter}},
    {Opcode::kSelectAndScatter,
     {shape_rules::SelectAndScatter, kArrays, cost_rules::SelectAndScatter}},
    {Opcode::kSend, {shape_rules::Send, kAny, cost_rules::Send, kStated}},
    {Opcode::kSendDone, {shape_rules::SendDone, kAny, Free}},
    {Opcode::kSetDimensionSize, {shape_rules::SetDimensionSize, kArrays, Free}},
    {Opcode::kSlice, {shape_rules::Slice, kArrays, MovesResult}},
    {Opcode::kSort, {shape_rules::Sort, kArrays, cost_rules::Sort}},
    {Opcode::kTopk, {shape_rules::TopK, kArrays, cost_rules::TopK}},
    {Opcode::kTranspose, {shape_rules::Transpose, kArrays, FullBytes}},
    {Opcode::kTriangularSolve,
     {shape_rules::TriangularSolve, kArrays, cost_rules::TriangularSolve}},
    {Opcode::kTuple, {TupleOfOperands, kAny, Free}},
    {Opcode::kWhile, {First, kAny, cost_rules::SumOfCalled}},
};

}  // namespace

const OpRules& RulesOf(Opcode opcode) {
  static const auto* const rules = [] {
    auto* table = new std::array<OpRules, kNumOpcodes>();
    table->fill({Own, kAny, nullptr, kStated});
    for (const OpRow& row : kOpRows) (*table)[static_cast<size_t>(row.opcode)] = row.rules;
    for (int o = 0; o < kNumOpcodes; ++o) {
      if (!IsElementwise(static_cast<Opcode>(o))) continue;
      const bool converts = static_cast<Opcode>(o) == Opcode::kConvert ||
                            static_cast<Opcode>(o) == Opcode::kStochasticConvert;
      (*table)[o] = {shape_rules::Elementwise, kArrays, cost_rules::Elementwise, converts};
    }
    return table;
  }();
  return (*rules)[static_cast<size_t>(opcode)];
}

}  // namespace tpusim::hlo
