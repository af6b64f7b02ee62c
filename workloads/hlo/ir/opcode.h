// Every HLO opcode: enumerator, wire name, number of operands, traits.
//
// One table says what an opcode is called and what is true of it wherever it occurs; the
// enum, the names and the predicates are made from it. Who needs a list of opcodes that
// have something in common gives it a trait here. Rules that differ from opcode to opcode
// (shapes, costs, shardings) have tables of their own; what depends on more than the
// opcode, such as how an instruction is executed, is in hlo/analysis.
#ifndef TPUSIM_WORKLOADS_HLO_IR_OPCODE_H_
#define TPUSIM_WORKLOADS_HLO_IR_OPCODE_H_

#include <optional>
#include <string_view>

namespace tpusim::hlo {

enum OpcodeTraits : unsigned {
  kElementwise = 1u << 0,     // each result element from the same element of every operand
  kTranscendental = 1u << 1,  // takes the transcendental unit
  kCollective = 1u << 2,      // moves data between devices, start and done forms included
  kAsyncStart = 1u << 3,
  kAsyncDone = 1u << 4,
  kFree = 1u << 5,          // nothing runs: it names, holds or orders values
  kOnScalarCore = 1u << 6,  // a few instructions of the scalar core
  kKernel = 1u << 7,        // a kernel on the TensorCore, as elementwise ones of arrays are
  kWindows = 1u << 8,       // ... that moves what it reads and writes block by block
  kControlFlow = 1u << 9,   // what it calls is executed as a part of the program
  kIndexMap = 1u << 10,     // result elements are elements of operands, at places known before
  kForwards = 1u << 11,     // the result is its first operand, in the same buffers
  kSideEffect = 1u << 12,   // must not be removed although nothing uses it
  kOwnsCallees = 1u << 13,  // no two instructions share what they call
  kProduct = 1u << 14,      // the arrays multiply
  kCombines = 1u << 15,     // calls a computation that makes one value of two, across devices
  kShifts = 1u << 16,       // elements come from other indices of the same dimension
};

// X(enumerator, wire name, arity, traits); arity -1 - n: at least n operands.
// clang-format off
#define TPUSIM_HLO_OPCODES(X)                                                                     \
  X(kAbs, "abs", 1, kElementwise)                                                                 \
  X(kAcos, "acos", 1, kElementwise | kTranscendental)                                             \
  X(kAcosh, "acosh", 1, kElementwise | kTranscendental)                                           \
  X(kAdd, "add", 2, kElementwise)                                                                 \
  X(kAddDependency, "add-dependency", 2, kFree | kForwards)                                       \
  X(kAfterAll, "after-all", -1, kFree)                                                            \
  X(kAllGather, "all-gather", -2, kCollective)                                                    \
  X(kAllGatherDone, "all-gather-done", 1, kCollective | kAsyncDone)                               \
  X(kAllGatherStart, "all-gather-start", -2, kCollective | kAsyncStart)                           \
  X(kAllReduce, "all-reduce", -2, kCollective | kCombines)                                        \
  X(kAllReduceDone, "all-reduce-done", 1, kCollective | kAsyncDone | kForwards)                   \
  X(kAllReduceStart, "all-reduce-start", -2, kCollective | kAsyncStart | kCombines)               \
  X(kAllToAll, "all-to-all", -2, kCollective)                                                     \
  X(kAnd, "and", 2, kElementwise)                                                                 \
  X(kAsin, "asin", 1, kElementwise | kTranscendental)                                             \
  X(kAsinh, "asinh", 1, kElementwise | kTranscendental)                                           \
  X(kAsyncDone, "async-done", 1, kAsyncDone)                                                      \
  X(kAsyncStart, "async-start", -1, kAsyncStart | kOwnsCallees)                                   \
  X(kAsyncUpdate, "async-update", 1, kFree | kForwards)                                           \
  X(kAtan2, "atan2", 2, kElementwise | kTranscendental)                                           \
  X(kAtanh, "atanh", 1, kElementwise | kTranscendental)                                           \
  X(kBatchNormGrad, "batch-norm-grad", 5, 0)                                                      \
  X(kBatchNormInference, "batch-norm-inference", 5, 0)                                            \
  X(kBatchNormTraining, "batch-norm-training", 3, 0)                                              \
  X(kBitcast, "bitcast", 1, kFree | kIndexMap | kForwards)                                        \
  X(kBitcastConvert, "bitcast-convert", 1, kKernel | kWindows)                                    \
  X(kBroadcast, "broadcast", 1, kKernel | kWindows | kIndexMap)                                   \
  X(kCall, "call", -1, kControlFlow | kOwnsCallees)                                               \
  X(kCbrt, "cbrt", 1, kElementwise | kTranscendental)                                             \
  X(kCeil, "ceil", 1, kElementwise)                                                               \
  X(kCholesky, "cholesky", 1, kKernel)                                                            \
  X(kClamp, "clamp", 3, kElementwise)                                                             \
  X(kCollectiveBroadcast, "collective-broadcast", -2, kCollective)                                \
  X(kCollectivePermute, "collective-permute", -2, kCollective)                                    \
  X(kCollectivePermuteDone, "collective-permute-done", 1, kCollective | kAsyncDone)               \
  X(kCollectivePermuteStart, "collective-permute-start", -2, kCollective | kAsyncStart)           \
  X(kCompare, "compare", 2, kElementwise)                                                         \
  X(kComplex, "complex", 2, kElementwise)                                                         \
  X(kConcatenate, "concatenate", -2, kKernel | kWindows | kIndexMap | kShifts)                    \
  X(kConditional, "conditional", -3, kControlFlow | kOwnsCallees)                                 \
  X(kConstant, "constant", 0, kFree)                                                              \
  X(kConvert, "convert", 1, kElementwise)                                                         \
  X(kConvolution, "convolution", 2, kKernel | kWindows | kProduct)                                \
  X(kCopy, "copy", 1, kKernel | kWindows)                                                         \
  X(kCopyDone, "copy-done", 1, kAsyncDone)                                                        \
  X(kCopyStart, "copy-start", 1, kAsyncStart)                                                     \
  X(kCosine, "cosine", 1, kElementwise | kTranscendental)                                         \
  X(kCosh, "cosh", 1, kElementwise | kTranscendental)                                             \
  X(kCountLeadingZeros, "count-leading-zeros", 1, kElementwise)                                   \
  X(kCustomCall, "custom-call", -1, 0)                                                            \
  X(kDivide, "divide", 2, kElementwise)                                                           \
  X(kDomain, "domain", 1, kFree | kForwards)                                                      \
  X(kDot, "dot", 2, kKernel | kWindows | kProduct)                                                \
  X(kDynamicReshape, "dynamic-reshape", -2, 0)                                                    \
  X(kDynamicSlice, "dynamic-slice", -2, kKernel | kWindows | kIndexMap | kShifts)                 \
  X(kDynamicUpdateSlice, "dynamic-update-slice", -3, kKernel)                                     \
  X(kErf, "erf", 1, kElementwise | kTranscendental)                                               \
  X(kExponential, "exponential", 1, kElementwise | kTranscendental)                               \
  X(kExponentialMinusOne, "exponential-minus-one", 1, kElementwise | kTranscendental)             \
  X(kFft, "fft", 1, kKernel)                                                                      \
  X(kFloor, "floor", 1, kElementwise)                                                             \
  X(kFusion, "fusion", -1, kKernel | kWindows | kOwnsCallees)                                     \
  X(kGather, "gather", 2, kKernel | kWindows)                                                     \
  X(kGetDimensionSize, "get-dimension-size", 1, kOnScalarCore)                                    \
  X(kGetTupleElement, "get-tuple-element", 1, kFree)                                              \
  X(kImag, "imag", 1, kElementwise)                                                               \
  X(kInfeed, "infeed", 1, kSideEffect)                                                            \
  X(kIota, "iota", 0, kKernel | kWindows)                                                         \
  X(kIsFinite, "is-finite", 1, kElementwise)                                                      \
  X(kLog, "log", 1, kElementwise | kTranscendental)                                               \
  X(kLogPlusOne, "log-plus-one", 1, kElementwise | kTranscendental)                               \
  X(kLogistic, "logistic", 1, kElementwise | kTranscendental)                                     \
  X(kMap, "map", -2, kKernel | kWindows)                                                          \
  X(kMaximum, "maximum", 2, kElementwise)                                                         \
  X(kMinimum, "minimum", 2, kElementwise)                                                         \
  X(kMulhi, "mulhi", 2, kElementwise)                                                             \
  X(kMultiply, "multiply", 2, kElementwise)                                                       \
  X(kNegate, "negate", 1, kElementwise)                                                           \
  X(kNot, "not", 1, kElementwise)                                                                 \
  X(kOptBarrier, "opt-barrier", 1, kFree | kForwards)                                             \
  X(kOr, "or", 2, kElementwise)                                                                   \
  X(kOutfeed, "outfeed", 2, kSideEffect)                                                          \
  X(kPad, "pad", 2, kKernel | kWindows | kIndexMap | kShifts)                                     \
  X(kParameter, "parameter", 0, kFree)                                                            \
  X(kPartitionId, "partition-id", 0, kOnScalarCore)                                               \
  X(kPopcnt, "popcnt", 1, kElementwise)                                                           \
  X(kPower, "power", 2, kElementwise | kTranscendental)                                           \
  X(kRaggedAllToAll, "ragged-all-to-all", 6, kCollective)                                         \
  X(kRaggedDot, "ragged-dot", 3, kKernel | kProduct)                                              \
  X(kReal, "real", 1, kElementwise)                                                               \
  X(kRecv, "recv", 1, kSideEffect)                                                                \
  X(kRecvDone, "recv-done", 1, kAsyncDone | kSideEffect)                                          \
  X(kReduce, "reduce", -3, kKernel | kWindows)                                                    \
  X(kReducePrecision, "reduce-precision", 1, kElementwise)                                        \
  X(kReduceScatter, "reduce-scatter", -2, kCollective | kCombines)                                \
  X(kReduceWindow, "reduce-window", -3, kKernel | kWindows)                                       \
  X(kRemainder, "remainder", 2, kElementwise)                                                     \
  X(kReplicaId, "replica-id", 0, kOnScalarCore)                                                   \
  X(kReshape, "reshape", 1, kKernel | kWindows | kIndexMap)                                       \
  X(kReverse, "reverse", 1, kKernel | kWindows | kIndexMap | kShifts)                             \
  X(kRng, "rng", -3, kSideEffect)                                                                 \
  X(kRngBitGenerator, "rng-bit-generator", 1, kKernel)                                            \
  X(kRngGetAndUpdateState, "rng-get-and-update-state", 0, kSideEffect)                            \
  X(kRoundNearestAfz, "round-nearest-afz", 1, kElementwise)                                       \
  X(kRoundNearestEven, "round-nearest-even", 1, kElementwise)                                     \
  X(kRsqrt, "rsqrt", 1, kElementwise | kTranscendental)                                           \
  X(kScaledDot, "scaled-dot", 4, 0)                                                               \
  X(kScan, "scan", -1, 0)                                                                         \
  X(kScatter, "scatter", -4, kKernel)                                                             \
  X(kSelect, "select", 3, kElementwise)                                                           \
  X(kSelectAndScatter, "select-and-scatter", 3, kKernel)                                          \
  X(kSend, "send", 2, kSideEffect)                                                                \
  X(kSendDone, "send-done", 1, kAsyncDone | kSideEffect)                                          \
  X(kSetDimensionSize, "set-dimension-size", 2, 0)                                                \
  X(kShiftLeft, "shift-left", 2, kElementwise)                                                    \
  X(kShiftRightArithmetic, "shift-right-arithmetic", 2, kElementwise)                             \
  X(kShiftRightLogical, "shift-right-logical", 2, kElementwise)                                   \
  X(kSign, "sign", 1, kElementwise)                                                               \
  X(kSine, "sine", 1, kElementwise | kTranscendental)                                             \
  X(kSinh, "sinh", 1, kElementwise | kTranscendental)                                             \
  X(kSlice, "slice", 1, kKernel | kWindows | kIndexMap | kShifts)                                 \
  X(kSort, "sort", -2, kKernel)                                                                   \
  X(kSqrt, "sqrt", 1, kElementwise | kTranscendental)                                             \
  X(kStochasticConvert, "stochastic-convert", 2, kElementwise)                                    \
  X(kSubtract, "subtract", 2, kElementwise)                                                       \
  X(kTan, "tan", 1, kElementwise | kTranscendental)                                               \
  X(kTanh, "tanh", 1, kElementwise | kTranscendental)                                             \
  X(kTopk, "topk", 1, kKernel)                                                                    \
  X(kTranspose, "transpose", 1, kKernel | kWindows | kIndexMap)                                   \
  X(kTriangularSolve, "triangular-solve", 2, kKernel)                                             \
  X(kTuple, "tuple", -1, kFree)                                                                   \
  X(kWhile, "while", 1, kControlFlow | kForwards | kOwnsCallees)                                  \
  X(kXor, "xor", 2, kElementwise)
// clang-format on

enum class Opcode {
#define TPUSIM_HLO_ENUMERATOR(enumerator, name, arity, traits) enumerator,
  TPUSIM_HLO_OPCODES(TPUSIM_HLO_ENUMERATOR)
#undef TPUSIM_HLO_ENUMERATOR
};

// The last row of the table.
inline constexpr int kNumOpcodes = static_cast<int>(Opcode::kXor) + 1;

std::string_view OpcodeName(Opcode opcode);  // "dynamic-slice"
std::optional<Opcode> OpcodeFromName(std::string_view name);
int OpcodeArity(Opcode opcode);     // -1 = variadic
int FewestOperands(Opcode opcode);  // the arity, or of a variadic one the least
unsigned OpcodeTraitsOf(Opcode opcode);

inline bool IsElementwise(Opcode opcode) { return OpcodeTraitsOf(opcode) & kElementwise; }
inline bool IsTranscendental(Opcode opcode) { return OpcodeTraitsOf(opcode) & kTranscendental; }
inline bool IsCollective(Opcode opcode) { return OpcodeTraitsOf(opcode) & kCollective; }
inline bool IsAsyncStart(Opcode opcode) { return OpcodeTraitsOf(opcode) & kAsyncStart; }
inline bool IsAsyncDone(Opcode opcode) { return OpcodeTraitsOf(opcode) & kAsyncDone; }
inline bool IsFree(Opcode opcode) { return OpcodeTraitsOf(opcode) & kFree; }
inline bool RunsOnScalarCore(Opcode opcode) { return OpcodeTraitsOf(opcode) & kOnScalarCore; }
inline bool RunsAsKernel(Opcode opcode) { return OpcodeTraitsOf(opcode) & kKernel; }
inline bool MovesThroughWindows(Opcode opcode) {
  return OpcodeTraitsOf(opcode) & (kWindows | kElementwise);
}
inline bool IsControlFlow(Opcode opcode) { return OpcodeTraitsOf(opcode) & kControlFlow; }
inline bool IsIndexMap(Opcode opcode) { return OpcodeTraitsOf(opcode) & kIndexMap; }
inline bool ShiftsElements(Opcode opcode) { return OpcodeTraitsOf(opcode) & kShifts; }
inline bool ForwardsOperand(Opcode opcode) { return OpcodeTraitsOf(opcode) & kForwards; }
inline bool OwnsCallees(Opcode opcode) { return OpcodeTraitsOf(opcode) & kOwnsCallees; }
inline bool IsProduct(Opcode opcode) { return OpcodeTraitsOf(opcode) & kProduct; }
inline bool CombinesAcrossDevices(Opcode opcode) { return OpcodeTraitsOf(opcode) & kCombines; }

// Strings of files written before `compare` had a direction ("less-than"):
// the direction ("LT"), or nullopt.
std::optional<std::string_view> OldCompareDirection(std::string_view name);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_IR_OPCODE_H_
