#include "workloads/hlo/rules/shape_inference.h"

#include <algorithm>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "workloads/hlo/rules/shape_rules.h"

namespace tpusim::hlo {
namespace shape_rules {

bool AreDims(const Dims& dims, int64_t rank) {
  Dims sorted = dims;
  std::sort(sorted.begin(), sorted.end());
  return std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end() &&
         std::all_of(sorted.begin(), sorted.end(), [&](int64_t d) { return InRange(d, rank); });
}

bool Contains(const Dims& dims, int64_t d) {
  return std::find(dims.begin(), dims.end(), d) != dims.end();
}

Shape OneOrTuple(std::vector<Shape> shapes) {
  return shapes.size() == 1 ? std::move(shapes[0]) : MakeTupleShape(std::move(shapes));
}

std::vector<Shape> OperandShapes(const Instruction& i, size_t count) {
  std::vector<Shape> shapes;
  shapes.reserve(count);
  for (size_t n = 0; n < count; ++n) shapes.push_back(In(i, n));
  return shapes;
}

absl::Status RequireArrays(const Instruction& i) {
  for (size_t n = 0; n < i.operands().size(); ++n) {
    TPUSIM_REQUIRE(In(i, n).IsArray(), "operand {} ({}) is no array", n, i.operand(n)->name());
  }
  return absl::OkStatus();
}

absl::Status CheckIndices(const Instruction& i, size_t first, int64_t wanted) {
  const int64_t count = static_cast<int64_t>(i.operands().size() - first);
  const bool vector = count == 1 && In(i, first).rank() == 1;
  TPUSIM_REQUIRE(vector ? In(i, first).dims[0] == wanted : count == wanted, "{} indices into {}",
                 count, In(i, 0).ToString());
  for (size_t n = first; n < i.operands().size(); ++n) {
    TPUSIM_REQUIRE(IsIntegral(In(i, n).element_type) && (vector || In(i, n).IsScalar()),
                   "index {} is {}", n - first, In(i, n).ToString());
  }
  return absl::OkStatus();
}

bool Compatible(PrimitiveType a, PrimitiveType b) {
  return a == b || (IsFloating(a) && IsFloating(b));
}

namespace {

Result TupleOfOperands(const Instruction& i) {
  return MakeTupleShape(OperandShapes(i, i.operands().size()));
}

Result TupleElement(const Instruction& i) {
  const int64_t index = i.attrs().tuple_index();
  TPUSIM_REQUIRE(In(i, 0).IsTuple() && InRange(index, static_cast<int64_t>(In(i, 0).tuple.size())),
                 "index {} of {}", index, In(i, 0).ToString());
  return In(i, 0).tuple[index];
}

Result Constant(const Instruction& i) {
  // Elided literals are legal.
  if (!i.attrs().has_literal()) return i.shape();
  const pb::ShapeProto& literal = i.attrs().literal().shape();
  TPUSIM_REQUIRE(static_cast<int>(literal.element_type()) == static_cast<int>(OwnType(i)) &&
                     std::equal(literal.dimensions().begin(), literal.dimensions().end(),
                                i.shape().dims.begin(), i.shape().dims.end()),
                 "the literal has another shape than {}", i.shape().ToString());
  return i.shape();
}

Result Own(const Instruction& i) { return i.shape(); }
Result First(const Instruction& i) { return In(i, 0); }
Result Callee(const Instruction& i) { return i.called()[0]->root()->shape(); }
Result DeviceNumber(const Instruction&) { return MakeScalarShape(PrimitiveType::kU32); }

using Rule = Result (*)(const Instruction&);
struct RuleRow {
  Rule rule;
  bool arrays = false;  // every operand must be an array
};

RuleRow RuleOf(Opcode opcode) {
  if (IsElementwise(opcode)) return {Elementwise, true};
  switch (opcode) {
    case Opcode::kBroadcast:
      return {Broadcast, true};
    case Opcode::kReshape:
      return {Reshape, true};
    case Opcode::kBitcast:
      return {Bitcast};
    case Opcode::kBitcastConvert:
      return {BitcastConvert, true};
    case Opcode::kTranspose:
      return {Transpose, true};
    case Opcode::kReverse:
      return {Reverse, true};
    case Opcode::kSlice:
      return {Slice, true};
    case Opcode::kDynamicSlice:
      return {DynamicSlice, true};
    case Opcode::kDynamicUpdateSlice:
      return {DynamicUpdateSlice, true};
    case Opcode::kConcatenate:
      return {Concatenate, true};
    case Opcode::kPad:
      return {Pad, true};
    case Opcode::kIota:
      return {Iota};
    case Opcode::kGetDimensionSize:
      return {GetDimensionSize, true};
    case Opcode::kSetDimensionSize:
      return {SetDimensionSize, true};
    case Opcode::kDot:
      return {Dot, true};
    case Opcode::kRaggedDot:
      return {RaggedDot, true};
    case Opcode::kScaledDot:
      return {ScaledDot, true};
    case Opcode::kConvolution:
      return {Convolution, true};
    case Opcode::kFft:
      return {Fft, true};
    case Opcode::kCholesky:
      return {Cholesky, true};
    case Opcode::kTriangularSolve:
      return {TriangularSolve, true};
    case Opcode::kRng:
      return {Rng, true};
    case Opcode::kRngBitGenerator:
      return {RngBitGenerator, true};
    case Opcode::kRngGetAndUpdateState:
      return {RngState};
    case Opcode::kReduce:
      return {Reduce, true};
    case Opcode::kReduceWindow:
      return {ReduceWindow, true};
    case Opcode::kSelectAndScatter:
      return {SelectAndScatter, true};
    case Opcode::kSort:
      return {Sort, true};
    case Opcode::kMap:
      return {Map, true};
    case Opcode::kTopk:
      return {TopK, true};
    case Opcode::kGather:
      return {Gather, true};
    case Opcode::kScatter:
      return {Scatter, true};
    case Opcode::kAllReduce:
      return {AllReduce};
    case Opcode::kAllReduceStart:
      return {AllReduceStart};
    case Opcode::kAllReduceDone:
      return {AllReduceDone};
    case Opcode::kAllGather:
      return {AllGather};
    case Opcode::kAllGatherStart:
      return {AllGatherStart};
    case Opcode::kReduceScatter:
      return {ReduceScatter};
    case Opcode::kAllToAll:
      return {AllToAll};
    case Opcode::kRaggedAllToAll:
      return {RaggedAllToAll, true};
    case Opcode::kCollectiveBroadcast:
      return {SameAsOperands};
    case Opcode::kCollectivePermute:
      return {CollectivePermute};
    case Opcode::kCollectivePermuteStart:
      return {CollectivePermuteStart};
    case Opcode::kAsyncStart:
      return {AsyncStart};
    case Opcode::kAsyncUpdate:
      return {AsyncUpdate};
    case Opcode::kAsyncDone:
    case Opcode::kAllGatherDone:
    case Opcode::kCollectivePermuteDone:
      return {DoneOfSecond};
    case Opcode::kCopyStart:
      return {CopyStart};
    case Opcode::kCopyDone:
      return {CopyDone};
    case Opcode::kSend:
      return {Send};
    case Opcode::kSendDone:
      return {SendDone};
    case Opcode::kRecv:
      return {Recv};
    case Opcode::kRecvDone:
      return {RecvDone};
    case Opcode::kInfeed:
      return {Infeed};
    case Opcode::kOutfeed:
      return {Outfeed};
    case Opcode::kAfterAll:
      return {AfterAll};
    case Opcode::kConstant:
      return {Constant};
    case Opcode::kTuple:
      return {TupleOfOperands};
    case Opcode::kGetTupleElement:
      return {TupleElement};
    case Opcode::kCall:
    case Opcode::kFusion:
      return {Callee};
    case Opcode::kCopy:
    case Opcode::kOptBarrier:
    case Opcode::kWhile:
    case Opcode::kDomain:
    case Opcode::kAddDependency:
      return {First};
    case Opcode::kPartitionId:
    case Opcode::kReplicaId:
      return {DeviceNumber};
    // Whatever they say: nothing implies it (parameter, custom-call), the
    // verifier has compared it with the branches (conditional), or there is no
    // rule yet, which a cost or a sharding rule will say when it is needed.
    default:
      return {Own};
  }
}

}  // namespace
}  // namespace shape_rules

absl::StatusOr<Shape> InferShape(const Instruction& i) {
  const shape_rules::RuleRow row = shape_rules::RuleOf(i.opcode());
  if (row.arrays) RETURN_IF_ERROR(shape_rules::RequireArrays(i));
  return row.rule(i);
}

}  // namespace tpusim::hlo
