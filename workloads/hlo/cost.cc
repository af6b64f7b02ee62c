#include "workloads/hlo/cost.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>

#include "configs/status_macros.h"
#include "fmt/format.h"
#include "workloads/hlo/attributes.h"

namespace tpusim::hlo {
namespace {

using Result = absl::StatusOr<Cost>;

// Saturating: a damaged file must not become undefined behaviour. Nothing real
// comes near.
int64_t Mul(int64_t a, int64_t b) {
  int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<int64_t>::max() : product;
}
int64_t Add(int64_t a, int64_t b) {
  int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<int64_t>::max() : sum;
}

int64_t CeilLog2(int64_t n) {
  return n <= 1 ? 0 : static_cast<int64_t>(std::bit_width(static_cast<uint64_t>(n - 1)));
}

Bytes OperandBytes(const Instruction& i) {
  Bytes sum(0);
  for (const Instruction* operand : i.operands()) sum += operand->shape().ByteSize();
  return sum;
}

// Reads its operands and writes its result, both whole.
Cost Full(const Instruction& i, int64_t flops = 0, int64_t transcendentals = 0) {
  return {Flops(flops), Flops(transcendentals), OperandBytes(i), i.shape().ByteSize()};
}

// Reads and writes `moved`; the rest of the operands is not touched.
Cost Moves(Bytes moved) { return {Flops(0), Flops(0), moved, moved}; }

// An array's elements; of the first element for tuples (reduce of several inputs).
int64_t Elements(const Shape& shape) {
  const std::vector<const Shape*> leaves = Leaves(shape);
  return !leaves.empty() && leaves[0]->IsArray() ? leaves[0]->ElementCount() : 0;
}

// `count` calls of a scalar computation: a reducer, a comparator.
absl::StatusOr<Cost> Applied(const Instruction& i, size_t callee, int64_t count) {
  if (callee >= i.called().size()) return UserError(i.Describe() + " calls nothing");
  ASSIGN_OR_RETURN(const Cost once, CostOf(*i.called()[callee]));
  Cost cost;
  cost.flops = Flops(Mul(once.flops.value(), count));
  cost.transcendentals = Flops(Mul(once.transcendentals.value(), count));
  return cost;
}

absl::StatusOr<Cost> FullApplied(const Instruction& i, int64_t count) {
  ASSIGN_OR_RETURN(Cost cost, Applied(i, 0, count));
  cost.bytes_read = OperandBytes(i);
  cost.bytes_written = i.shape().ByteSize();
  return cost;
}

Result Elementwise(const Instruction& i) {
  const int64_t n = i.shape().ElementCount();
  return Full(i, n, IsTranscendental(i.opcode()) ? n : 0);
}

Result Dot(const Instruction& i) {
  const DotDims dims = GetDotDims(i);
  int64_t k = 1;
  for (int64_t d : dims.lhs_contracting) k *= i.operand(0)->shape().dims[d];
  return Full(i, Mul(2, Mul(i.shape().ElementCount(), k)));
}

// Every row of the left side meets one group of the right side.
Result RaggedDot(const Instruction& i) {
  const DotDims dims = GetDotDims(i);
  const Shape& rhs = i.operand(1)->shape();
  const auto& ragged = i.attrs().ragged_dot_dimension_numbers();
  int64_t columns = 1;
  for (int64_t d : FreeDims(rhs.rank(), dims.rhs_contracting, dims.rhs_batch)) {
    const auto& groups = ragged.rhs_group_dimensions();
    if (std::find(groups.begin(), groups.end(), d) == groups.end()) columns *= rhs.dims[d];
  }
  return Full(i, Mul(2, Mul(i.operand(0)->shape().ElementCount(), columns)));
}

int64_t FloorDiv(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

// Pairs (output position, kernel position) of one spatial dimension that meet an
// element of the input, and not padding or a hole of the dilated input.
int64_t ValidPositions(int64_t bound, int64_t outputs, const WindowDim& w) {
  const int64_t dilated = bound == 0 ? 0 : (bound - 1) * w.base_dilation + 1;
  int64_t valid = 0;
  for (int64_t k = 0; k < w.size; ++k) {
    // The position in the dilated input is o * stride + offset.
    const int64_t offset = k * w.window_dilation - w.padding_low;
    const int64_t first = std::max<int64_t>(0, -FloorDiv(offset, w.stride));
    const int64_t last = std::min(outputs - 1, FloorDiv(dilated - 1 - offset, w.stride));
    // Holes repeat with this period in o.
    const int64_t period = w.base_dilation / std::gcd(w.stride, w.base_dilation);
    for (int64_t o = first; o <= last && o < first + period; ++o) {
      if ((o * w.stride + offset) % w.base_dilation == 0) valid += (last - o) / period + 1;
    }
  }
  return valid;
}

Result Convolution(const Instruction& i) {
  const pb::ConvolutionDimensionNumbers& n = i.attrs().convolution_dimension_numbers();
  const Shape &in = i.operand(0)->shape(), &kernel = i.operand(1)->shape(), &out = i.shape();
  int64_t fmas =
      Mul(Mul(out.dims[n.output_batch_dimension()], out.dims[n.output_feature_dimension()]),
          kernel.dims[n.kernel_input_feature_dimension()]);
  const std::vector<WindowDim> window = GetWindow(i);
  for (int s = 0; s < n.input_spatial_dimensions_size(); ++s) {
    fmas = Mul(fmas, ValidPositions(in.dims[n.input_spatial_dimensions(s)],
                                    out.dims[n.output_spatial_dimensions(s)], window[s]));
  }
  return Full(i, Mul(2, fmas));
}

// N values are reduced to one by N - 1 calls, and the initial value is free
// (as in XLA's HloCostAnalysis).
Result Reduce(const Instruction& i) {
  return FullApplied(i,
                     std::max<int64_t>(0, Elements(i.operand(0)->shape()) - Elements(i.shape())));
}

int64_t WindowElements(const Instruction& i) {
  int64_t elements = 1;
  for (const WindowDim& d : GetWindow(i)) elements = Mul(elements, d.size);
  return elements;
}

Result ReduceWindow(const Instruction& i) {
  return FullApplied(i, Mul(std::max<int64_t>(0, WindowElements(i) - 1), Elements(i.shape())));
}

// Each source element: the window's winner by comparisons, then one scatter.
Result SelectAndScatter(const Instruction& i) {
  const int64_t sources = Elements(i.operand(1)->shape());
  ASSIGN_OR_RETURN(const Cost select,
                   Applied(i, 0, Mul(sources, std::max<int64_t>(0, WindowElements(i) - 1))));
  ASSIGN_OR_RETURN(const Cost scatter, Applied(i, 1, sources));
  return Full(i, Add(select.flops.value(), scatter.flops.value()),
              Add(select.transcendentals.value(), scatter.transcendentals.value()));
}

// Reads what it gives, and the indices.
Result Gather(const Instruction& i) {
  Cost cost = Moves(i.shape().ByteSize());
  cost.bytes_read += i.operand(1)->shape().ByteSize();
  return cost;
}

// In place: the touched part of the operands is as large as the updates, and is
// read and written.
Result Scatter(const Instruction& i) {
  const size_t n = i.operands().size() / 2;
  Bytes updates(0);
  for (size_t k = n + 1; k < i.operands().size(); ++k) updates += i.operand(k)->shape().ByteSize();
  ASSIGN_OR_RETURN(Cost cost, Applied(i, 0, Elements(i.operand(n + 1)->shape())));
  cost.bytes_read = updates + updates + i.operand(n)->shape().ByteSize();
  cost.bytes_written = updates;
  return cost;
}

Result Sort(const Instruction& i) {
  const int64_t n = Elements(i.operand(0)->shape());
  return Full(i, Mul(n, CeilLog2(n)));
}

// A heap of k: one walk down per element.
Result TopK(const Instruction& i) {
  return Full(i, Mul(Elements(i.operand(0)->shape()), CeilLog2(i.attrs().k() + 1)));
}

Result Fft(const Instruction& i) {
  int64_t log2 = 0;
  for (int64_t length : i.attrs().fft_length()) log2 += CeilLog2(length);
  // A butterfly is a complex multiply-add: 4 multiply-adds of reals.
  return Full(i, Mul(2 * 4 * log2, i.shape().ElementCount()));
}

Result Cholesky(const Instruction& i) {
  const Shape& a = i.operand(0)->shape();
  return Full(i, Mul(a.ElementCount(), a.dims.empty() ? 1 : a.dims.back()) / 3);
}

Result TriangularSolve(const Instruction& i) {
  const Shape& a = i.operand(0)->shape();
  return Full(i, Mul(i.operand(1)->shape().ElementCount(), a.dims.empty() ? 1 : a.dims.back()));
}

// Operations per 32-bit word (Salmon et al., "Parallel random numbers: as easy
// as 1, 2, 3", SC'11). Philox-4x32-10: 10 rounds of 2 high and 2 low products,
// 4 xors and 2 key additions for 4 words. Threefry-2x32-20: 20 rounds of an
// addition, a rotation (2 shifts and an or) and a xor, and 5 key injections of 3
// additions, for 2 words; 57.5, rounded up.
Result RngBitGenerator(const Instruction& i) {
  constexpr int64_t kPhilox = 10 * (2 + 2 + 4 + 2) / 4;
  constexpr int64_t kThreefry = (20 * (1 + 3 + 1) + 5 * 3 + 1) / 2;
  const int64_t per_word = i.attrs().rng_algorithm() == pb::RNG_THREE_FRY ? kThreefry : kPhilox;
  return Full(i, Mul(per_word, CeilDiv(i.shape().ByteSize().value(), 4)));
}

Result AllReduce(const Instruction& i) {
  int64_t elements = 0;
  for (const Instruction* operand : i.operands()) {
    elements = Add(elements, Elements(operand->shape()));
  }
  Cost cost = Full(i, elements);
  // A start's shape may hold the operands too; the result is as large as they are.
  cost.bytes_written = OperandBytes(i);
  return cost;
}

// all-gather-start and collective-permute-start give (operands, results, ...).
Result CollectiveStart(const Instruction& i) {
  Cost cost = Full(i);
  if (i.shape().tuple.size() >= 2) cost.bytes_written = i.shape().tuple[1].ByteSize();
  return cost;
}

// Bytes that a fusion reads of one of its parameters: all, unless every user
// only takes slices of it or updates it in place.
Bytes ReadOfParameter(const Instruction& parameter) {
  Bytes sliced(0);
  if (parameter.IsRoot()) return parameter.shape().ByteSize();
  for (const Instruction* user : parameter.users()) {
    const auto uses = std::count(user->operands().begin(), user->operands().end(), &parameter);
    const bool as_first = uses == 1 && user->operand(0) == &parameter;
    switch (user->opcode()) {
      case Opcode::kSlice:
      case Opcode::kDynamicSlice:
      case Opcode::kGather:
        if (!as_first) return parameter.shape().ByteSize();
        sliced += user->shape().ByteSize();
        break;
      case Opcode::kDynamicUpdateSlice:
        if (!as_first) return parameter.shape().ByteSize();
        break;
      default:
        return parameter.shape().ByteSize();
    }
  }
  return std::min(sliced, parameter.shape().ByteSize());
}

Bytes WrittenByRoot(const Instruction& root) {
  if (root.opcode() == Opcode::kTuple) {
    Bytes sum(0);
    for (const Instruction* element : root.operands()) sum += WrittenByRoot(*element);
    return sum;
  }
  if (root.opcode() == Opcode::kBitcast &&
      root.operand(0)->opcode() == Opcode::kDynamicUpdateSlice) {
    return WrittenByRoot(*root.operand(0));
  }
  if (root.opcode() == Opcode::kDynamicUpdateSlice &&
      root.operand(0)->opcode() == Opcode::kParameter) {
    return root.operand(1)->shape().ByteSize();
  }
  return root.shape().ByteSize();
}

// Arithmetic of the body, bytes of the boundary: values inside stay in registers.
Result Fusion(const Instruction& i) {
  const Computation& body = *i.called()[0];
  ASSIGN_OR_RETURN(Cost cost, CostOf(body));
  cost.bytes_read = Bytes(0);
  for (const Instruction* parameter : body.parameters()) {
    cost.bytes_read += ReadOfParameter(*parameter);
  }
  cost.bytes_written = WrittenByRoot(*body.root());
  return cost;
}

void Accumulate(const Cost& part, Cost* sum) {
  sum->flops = Flops(Add(sum->flops.value(), part.flops.value()));
  sum->transcendentals = Flops(Add(sum->transcendentals.value(), part.transcendentals.value()));
  sum->bytes_read = Bytes(Add(sum->bytes_read.value(), part.bytes_read.value()));
  sum->bytes_written = Bytes(Add(sum->bytes_written.value(), part.bytes_written.value()));
}

Result SumOfCalled(const Instruction& i) {
  Cost sum;
  for (const Computation* called : i.called()) {
    ASSIGN_OR_RETURN(const Cost cost, CostOf(*called));
    Accumulate(cost, &sum);
  }
  return sum;
}

// The most that any branch takes, in each figure.
Result Conditional(const Instruction& i) {
  Cost most;
  for (const Computation* branch : i.called()) {
    ASSIGN_OR_RETURN(const Cost cost, CostOf(*branch));
    most.flops = std::max(most.flops, cost.flops);
    most.transcendentals = std::max(most.transcendentals, cost.transcendentals);
    most.bytes_read = std::max(most.bytes_read, cost.bytes_read);
    most.bytes_written = std::max(most.bytes_written, cost.bytes_written);
  }
  return most;
}

Result Free(const Instruction&) { return Cost{}; }
Result FullBytes(const Instruction& i) { return Full(i); }
Result MovesResult(const Instruction& i) { return Moves(i.shape().ByteSize()); }
Result MovesUpdate(const Instruction& i) { return Moves(i.operand(1)->shape().ByteSize()); }
Result MovesOperand(const Instruction& i) { return Moves(i.operand(0)->shape().ByteSize()); }
Result MapRule(const Instruction& i) { return FullApplied(i, Elements(i.shape())); }

using Rule = Result (*)(const Instruction&);

// nullptr: no rule.
Rule RuleOf(Opcode opcode) {
  if (IsElementwise(opcode)) return Elementwise;
  switch (opcode) {
    // Names of values that exist already, and what only orders or describes.
    case Opcode::kParameter:
    case Opcode::kConstant:
    case Opcode::kTuple:
    case Opcode::kGetTupleElement:
    case Opcode::kBitcast:
    case Opcode::kAfterAll:
    case Opcode::kAddDependency:
    case Opcode::kOptBarrier:
    case Opcode::kDomain:
    case Opcode::kPartitionId:
    case Opcode::kReplicaId:
    case Opcode::kGetDimensionSize:
    // The start has the cost.
    case Opcode::kAllGatherDone:
    case Opcode::kAllReduceDone:
    case Opcode::kCollectivePermuteDone:
    case Opcode::kCopyDone:
    case Opcode::kAsyncUpdate:
    case Opcode::kAsyncDone:
    case Opcode::kSendDone:
    case Opcode::kRecvDone:
      return Free;
    case Opcode::kDot:
      return Dot;
    case Opcode::kRaggedDot:
      return RaggedDot;
    case Opcode::kConvolution:
      return Convolution;
    case Opcode::kReduce:
      return Reduce;
    case Opcode::kReduceWindow:
      return ReduceWindow;
    case Opcode::kSelectAndScatter:
      return SelectAndScatter;
    case Opcode::kMap:
      return MapRule;
    case Opcode::kSlice:
    case Opcode::kDynamicSlice:
      return MovesResult;
    case Opcode::kDynamicUpdateSlice:
      return MovesUpdate;
    case Opcode::kCopyStart:
    case Opcode::kSend:
      return MovesOperand;
    case Opcode::kGather:
      return Gather;
    case Opcode::kScatter:
      return Scatter;
    case Opcode::kSort:
      return Sort;
    case Opcode::kTopk:
      return TopK;
    case Opcode::kFft:
      return Fft;
    case Opcode::kCholesky:
      return Cholesky;
    case Opcode::kTriangularSolve:
      return TriangularSolve;
    case Opcode::kRngBitGenerator:
      return RngBitGenerator;
    case Opcode::kBroadcast:
    case Opcode::kReshape:
    case Opcode::kTranspose:
    case Opcode::kCopy:
    case Opcode::kConcatenate:
    case Opcode::kPad:
    case Opcode::kReverse:
    case Opcode::kIota:
    case Opcode::kBitcastConvert:
    case Opcode::kAllGather:
    case Opcode::kAllToAll:
    case Opcode::kCollectivePermute:
    case Opcode::kCollectiveBroadcast:
    case Opcode::kReduceScatter:
    case Opcode::kRaggedAllToAll:
      return FullBytes;
    case Opcode::kAllReduce:
    case Opcode::kAllReduceStart:
      return AllReduce;
    case Opcode::kAllGatherStart:
    case Opcode::kCollectivePermuteStart:
      return CollectiveStart;
    case Opcode::kWhile:
    case Opcode::kCall:
    case Opcode::kAsyncStart:
      return SumOfCalled;
    case Opcode::kConditional:
      return Conditional;
    case Opcode::kFusion:
      return Fusion;
    default:
      return nullptr;
  }
}

}  // namespace

absl::StatusOr<Cost> CostOf(const Instruction& instruction) {
  const Rule rule = RuleOf(instruction.opcode());
  if (rule != nullptr) return rule(instruction);
  if (instruction.opcode() == Opcode::kCustomCall) {
    return NoRule(fmt::format(
        "{}: custom call to '{}' has no cost; give it with --kernel-cost {}=FLOPS,BYTES",
        instruction.Describe(), instruction.attrs().custom_call_target(), instruction.name()));
  }
  return NoRule(fmt::format("{}: no cost rule for {}", instruction.Describe(),
                            OpcodeName(instruction.opcode())));
}

absl::StatusOr<Cost> CostOf(const Computation& computation) {
  Cost sum;
  for (const Instruction* instruction : computation.PostOrder()) {
    ASSIGN_OR_RETURN(const Cost cost, CostOf(*instruction));
    Accumulate(cost, &sum);
  }
  return sum;
}

}  // namespace tpusim::hlo
