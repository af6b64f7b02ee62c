// Every HLO opcode: enumerator, wire name, number of operands, flags.
//
// One table says what an opcode is called and what family it belongs to; the
// enum, the names and the predicates are made from it. Rules that need more
// than a flag (shapes, costs, shardings) have tables of their own.
#ifndef TPUSIM_WORKLOADS_HLO_OPCODE_H_
#define TPUSIM_WORKLOADS_HLO_OPCODE_H_

#include <optional>
#include <string_view>

namespace tpusim::hlo {

enum OpcodeFlags : unsigned {
  kElementwise = 1u,     // each result element from the same element of every operand
  kTranscendental = 2u,  // takes the transcendental unit
  kCollective = 4u,      // moves data between devices, start and done forms included
  kAsyncStart = 8u,
  kAsyncDone = 16u,
};

// X(enumerator, wire name, arity, flags); arity -1 = variadic.
// clang-format off
#define TPUSIM_HLO_OPCODES(X) \
  X(kAbs, "abs", 1, kElementwise)                                                       \
  X(kAcos, "acos", 1, kElementwise | kTranscendental)                                   \
  X(kAcosh, "acosh", 1, kElementwise | kTranscendental)                                 \
  X(kAdd, "add", 2, kElementwise)                                                       \
  X(kAddDependency, "add-dependency", 2, 0)                                             \
  X(kAfterAll, "after-all", -1, 0)                                                      \
  X(kAllGather, "all-gather", -1, kCollective)                                          \
  X(kAllGatherDone, "all-gather-done", 1, kCollective | kAsyncDone)                     \
  X(kAllGatherStart, "all-gather-start", -1, kCollective | kAsyncStart)                 \
  X(kAllReduce, "all-reduce", -1, kCollective)                                          \
  X(kAllReduceDone, "all-reduce-done", 1, kCollective | kAsyncDone)                     \
  X(kAllReduceStart, "all-reduce-start", -1, kCollective | kAsyncStart)                 \
  X(kAllToAll, "all-to-all", -1, kCollective)                                           \
  X(kAnd, "and", 2, kElementwise)                                                       \
  X(kAsin, "asin", 1, kElementwise | kTranscendental)                                   \
  X(kAsinh, "asinh", 1, kElementwise | kTranscendental)                                 \
  X(kAsyncDone, "async-done", 1, kAsyncDone)                                            \
  X(kAsyncStart, "async-start", -1, kAsyncStart)                                        \
  X(kAsyncUpdate, "async-update", 1, 0)                                                 \
  X(kAtan2, "atan2", 2, kElementwise | kTranscendental)                                 \
  X(kAtanh, "atanh", 1, kElementwise | kTranscendental)                                 \
  X(kBatchNormGrad, "batch-norm-grad", 5, 0)                                            \
  X(kBatchNormInference, "batch-norm-inference", 5, 0)                                  \
  X(kBatchNormTraining, "batch-norm-training", 3, 0)                                    \
  X(kBitcast, "bitcast", 1, 0)                                                          \
  X(kBitcastConvert, "bitcast-convert", 1, 0)                                           \
  X(kBroadcast, "broadcast", 1, 0)                                                      \
  X(kCall, "call", -1, 0)                                                               \
  X(kCbrt, "cbrt", 1, kElementwise | kTranscendental)                                   \
  X(kCeil, "ceil", 1, kElementwise)                                                     \
  X(kCholesky, "cholesky", 1, 0)                                                        \
  X(kClamp, "clamp", 3, kElementwise)                                                   \
  X(kCollectiveBroadcast, "collective-broadcast", -1, kCollective)                      \
  X(kCollectivePermute, "collective-permute", -1, kCollective)                          \
  X(kCollectivePermuteDone, "collective-permute-done", 1, kCollective | kAsyncDone)     \
  X(kCollectivePermuteStart, "collective-permute-start", -1, kCollective | kAsyncStart) \
  X(kCompare, "compare", 2, kElementwise)                                               \
  X(kComplex, "complex", 2, kElementwise)                                               \
  X(kConcatenate, "concatenate", -1, 0)                                                 \
  X(kConditional, "conditional", -1, 0)                                                 \
  X(kConstant, "constant", 0, 0)                                                        \
  X(kConvert, "convert", 1, kElementwise)                                               \
  X(kConvolution, "convolution", 2, 0)                                                  \
  X(kCopy, "copy", 1, 0)                                                                \
  X(kCopyDone, "copy-done", 1, kAsyncDone)                                              \
  X(kCopyStart, "copy-start", 1, kAsyncStart)                                           \
  X(kCosine, "cosine", 1, kElementwise | kTranscendental)                               \
  X(kCosh, "cosh", 1, kElementwise | kTranscendental)                                   \
  X(kCountLeadingZeros, "count-leading-zeros", 1, kElementwise)                         \
  X(kCustomCall, "custom-call", -1, 0)                                                  \
  X(kDivide, "divide", 2, kElementwise)                                                 \
  X(kDomain, "domain", 1, 0)                                                            \
  X(kDot, "dot", 2, 0)                                                                  \
  X(kDynamicReshape, "dynamic-reshape", -1, 0)                                          \
  X(kDynamicSlice, "dynamic-slice", -1, 0)                                              \
  X(kDynamicUpdateSlice, "dynamic-update-slice", -1, 0)                                 \
  X(kErf, "erf", 1, kElementwise | kTranscendental)                                     \
  X(kExponential, "exponential", 1, kElementwise | kTranscendental)                     \
  X(kExponentialMinusOne, "exponential-minus-one", 1, kElementwise | kTranscendental)   \
  X(kFft, "fft", 1, 0)                                                                  \
  X(kFloor, "floor", 1, kElementwise)                                                   \
  X(kFusion, "fusion", -1, 0)                                                           \
  X(kGather, "gather", 2, 0)                                                            \
  X(kGetDimensionSize, "get-dimension-size", 1, 0)                                      \
  X(kGetTupleElement, "get-tuple-element", 1, 0)                                        \
  X(kImag, "imag", 1, kElementwise)                                                     \
  X(kInfeed, "infeed", 1, 0)                                                            \
  X(kIota, "iota", 0, 0)                                                                \
  X(kIsFinite, "is-finite", 1, kElementwise)                                            \
  X(kLog, "log", 1, kElementwise | kTranscendental)                                     \
  X(kLogPlusOne, "log-plus-one", 1, kElementwise | kTranscendental)                     \
  X(kLogistic, "logistic", 1, kElementwise | kTranscendental)                           \
  X(kMap, "map", -1, 0)                                                                 \
  X(kMaximum, "maximum", 2, kElementwise)                                               \
  X(kMinimum, "minimum", 2, kElementwise)                                               \
  X(kMulhi, "mulhi", 2, kElementwise)                                                   \
  X(kMultiply, "multiply", 2, kElementwise)                                             \
  X(kNegate, "negate", 1, kElementwise)                                                 \
  X(kNot, "not", 1, kElementwise)                                                       \
  X(kOptBarrier, "opt-barrier", 1, 0)                                                   \
  X(kOr, "or", 2, kElementwise)                                                         \
  X(kOutfeed, "outfeed", 2, 0)                                                          \
  X(kPad, "pad", 2, 0)                                                                  \
  X(kParameter, "parameter", 0, 0)                                                      \
  X(kPartitionId, "partition-id", 0, 0)                                                 \
  X(kPopcnt, "popcnt", 1, kElementwise)                                                 \
  X(kPower, "power", 2, kElementwise | kTranscendental)                                 \
  X(kRaggedAllToAll, "ragged-all-to-all", 6, kCollective)                               \
  X(kRaggedDot, "ragged-dot", 3, 0)                                                     \
  X(kReal, "real", 1, kElementwise)                                                     \
  X(kRecv, "recv", 1, 0)                                                                \
  X(kRecvDone, "recv-done", 1, kAsyncDone)                                              \
  X(kReduce, "reduce", -1, 0)                                                           \
  X(kReducePrecision, "reduce-precision", 1, kElementwise)                              \
  X(kReduceScatter, "reduce-scatter", -1, kCollective)                                  \
  X(kReduceWindow, "reduce-window", -1, 0)                                              \
  X(kRemainder, "remainder", 2, kElementwise)                                           \
  X(kReplicaId, "replica-id", 0, 0)                                                     \
  X(kReshape, "reshape", 1, 0)                                                          \
  X(kReverse, "reverse", 1, 0)                                                          \
  X(kRng, "rng", -1, 0)                                                                 \
  X(kRngBitGenerator, "rng-bit-generator", 1, 0)                                        \
  X(kRngGetAndUpdateState, "rng-get-and-update-state", 0, 0)                            \
  X(kRoundNearestAfz, "round-nearest-afz", 1, kElementwise)                             \
  X(kRoundNearestEven, "round-nearest-even", 1, kElementwise)                           \
  X(kRsqrt, "rsqrt", 1, kElementwise | kTranscendental)                                 \
  X(kScaledDot, "scaled-dot", 4, 0)                                                     \
  X(kScan, "scan", -1, 0)                                                               \
  X(kScatter, "scatter", -1, 0)                                                         \
  X(kSelect, "select", 3, kElementwise)                                                 \
  X(kSelectAndScatter, "select-and-scatter", 3, 0)                                      \
  X(kSend, "send", 2, 0)                                                                \
  X(kSendDone, "send-done", 1, kAsyncDone)                                              \
  X(kSetDimensionSize, "set-dimension-size", 2, 0)                                      \
  X(kShiftLeft, "shift-left", 2, kElementwise)                                          \
  X(kShiftRightArithmetic, "shift-right-arithmetic", 2, kElementwise)                   \
  X(kShiftRightLogical, "shift-right-logical", 2, kElementwise)                         \
  X(kSign, "sign", 1, kElementwise)                                                     \
  X(kSine, "sine", 1, kElementwise | kTranscendental)                                   \
  X(kSinh, "sinh", 1, kElementwise | kTranscendental)                                   \
  X(kSlice, "slice", 1, 0)                                                              \
  X(kSort, "sort", -1, 0)                                                               \
  X(kSqrt, "sqrt", 1, kElementwise | kTranscendental)                                   \
  X(kStochasticConvert, "stochastic-convert", 2, kElementwise)                          \
  X(kSubtract, "subtract", 2, kElementwise)                                             \
  X(kTan, "tan", 1, kElementwise | kTranscendental)                                     \
  X(kTanh, "tanh", 1, kElementwise | kTranscendental)                                   \
  X(kTopk, "topk", 1, 0)                                                                \
  X(kTranspose, "transpose", 1, 0)                                                      \
  X(kTriangularSolve, "triangular-solve", 2, 0)                                         \
  X(kTuple, "tuple", -1, 0)                                                             \
  X(kWhile, "while", 1, 0)                                                              \
  X(kXor, "xor", 2, kElementwise)
// clang-format on

enum class Opcode {
#define TPUSIM_HLO_ENUMERATOR(enumerator, name, arity, flags) enumerator,
  TPUSIM_HLO_OPCODES(TPUSIM_HLO_ENUMERATOR)
#undef TPUSIM_HLO_ENUMERATOR
};

// The last row of the table.
inline constexpr int kNumOpcodes = static_cast<int>(Opcode::kXor) + 1;

std::string_view OpcodeName(Opcode opcode);  // "dynamic-slice"
std::optional<Opcode> OpcodeFromName(std::string_view name);
int OpcodeArity(Opcode opcode);  // -1 = variadic
unsigned OpcodeFlagsOf(Opcode opcode);

inline bool IsElementwise(Opcode opcode) { return OpcodeFlagsOf(opcode) & kElementwise; }
inline bool IsTranscendental(Opcode opcode) { return OpcodeFlagsOf(opcode) & kTranscendental; }
inline bool IsCollective(Opcode opcode) { return OpcodeFlagsOf(opcode) & kCollective; }
inline bool IsAsyncStart(Opcode opcode) { return OpcodeFlagsOf(opcode) & kAsyncStart; }
inline bool IsAsyncDone(Opcode opcode) { return OpcodeFlagsOf(opcode) & kAsyncDone; }

// Strings of files written before `compare` had a direction ("less-than"):
// the direction ("LT"), or nullopt.
std::optional<std::string_view> OldCompareDirection(std::string_view name);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_OPCODE_H_
