// Typed access to the attributes that Instruction::attrs() keeps as a wire
// message.
//
// Readers return plain vectors and structs with the wire format's defaults
// filled in (a stride of 0 in the file is a stride of 1). Writers set one
// attribute and leave the rest. Nothing here checks an attribute against shapes:
// the verifier has done that.
#ifndef TPUSIM_WORKLOADS_HLO_IR_ATTRIBUTES_H_
#define TPUSIM_WORKLOADS_HLO_IR_ATTRIBUTES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "workloads/hlo/ir/ir.h"

namespace tpusim::hlo {

// ---- Dimensions ------------------------------------------------------------

// Field `dimensions`: of broadcast, reduce, transpose, reverse, concatenate,
// iota, sort, all-gather, reduce-scatter, all-to-all.
std::vector<int64_t> Dimensions(const Instruction& instruction);
void SetDimensions(Instruction* instruction, const std::vector<int64_t>& dimensions);
// The one dimension of concatenate, iota, sort, all-gather, ...; -1 if there is none.
int64_t OnlyDimension(const Instruction& instruction);

// Whether every element of the result follows from the elements at its place: what the
// opcode says, and bitcast-converts to elements of the same width.
bool IsElementwise(const Instruction& instruction);

struct DotDims {
  std::vector<int64_t> lhs_contracting, rhs_contracting, lhs_batch, rhs_batch;
  bool operator==(const DotDims&) const = default;
};
DotDims GetDotDims(const Instruction& instruction);  // of dot and ragged-dot
void SetDotDims(Instruction* dot, const DotDims& dims);
// Dimensions of an operand that neither contract nor batch, ascending.
std::vector<int64_t> FreeDims(int64_t rank, const std::vector<int64_t>& contracting,
                              const std::vector<int64_t>& batch);

struct SliceDim {
  int64_t start = 0, limit = 0, stride = 1;
  bool operator==(const SliceDim&) const = default;
};
std::vector<SliceDim> GetSlice(const Instruction& slice);
void SetSlice(Instruction* slice, const std::vector<SliceDim>& dims);

std::vector<int64_t> DynamicSliceSizes(const Instruction& dynamic_slice);
void SetDynamicSliceSizes(Instruction* dynamic_slice, const std::vector<int64_t>& sizes);

struct PaddingDim {
  int64_t low = 0, high = 0, interior = 0;  // low and high may be negative
  bool operator==(const PaddingDim&) const = default;
};
std::vector<PaddingDim> GetPadding(const Instruction& pad);
void SetPadding(Instruction* pad, const std::vector<PaddingDim>& dims);

struct WindowDim {
  int64_t size = 1, stride = 1, padding_low = 0, padding_high = 0;
  int64_t window_dilation = 1, base_dilation = 1;
  bool reversal = false;
  bool operator==(const WindowDim&) const = default;
};
std::vector<WindowDim> GetWindow(const Instruction& instruction);
void SetWindow(Instruction* instruction, const std::vector<WindowDim>& dims);
// Number of window positions over a dimension of `bound`; 0 if none fits.
int64_t WindowPositions(int64_t bound, const WindowDim& dim);
// Every position keeps all elements of the one before and has one more, as in a running sum.
bool IsRunning(int64_t bound, const WindowDim& dim);

int64_t FeatureGroupCount(const Instruction& convolution);  // at least 1
int64_t BatchGroupCount(const Instruction& convolution);    // at least 1

// ---- Device groups ---------------------------------------------------------

// The groups of a collective as lists of partition ids, whichever of the four
// encodings the file used (iota, mesh axes, device list, plain). Order inside a
// group matters. Empty in the file = one group of everybody. There is one
// replica, as in everything that jax.jit exports; where a program has only
// replicas (old pmap), those are what we call partitions.
// Errors: ids outside [0, num_partitions), an id twice or in no group, an encoding
// that does not add up.
absl::StatusOr<std::vector<std::vector<int64_t>>> ReplicaGroups(const Instruction& collective,
                                                                int64_t num_partitions);
// Writes explicit groups and drops every other encoding.
void SetReplicaGroups(Instruction* collective, const std::vector<std::vector<int64_t>>& groups);

// Groups of `group_size` that follow each other in TransposedIota(reshape_dims,
// transpose_perm): as short for a pod as for a host.
struct IotaGroups {
  int64_t groups = 1, group_size = 1;
  std::vector<int64_t> reshape_dims, transpose_perm;
};
void SetIotaReplicaGroups(Instruction* collective, const IotaGroups& groups);

using SourceTargetPair = std::pair<int64_t, int64_t>;
std::vector<SourceTargetPair> SourceTargetPairs(const Instruction& permute);
void SetSourceTargetPairs(Instruction* permute, const std::vector<SourceTargetPair>& pairs);

// Channel 0 or less is none.
inline bool HasChannel(const Instruction& i) { return i.attrs().channel_id() > 0; }

// iota(prod(dims)).reshape(dims).transpose(perm), flattened. An empty perm is
// the identity. Errors: perm is no permutation, or more than 2^24 elements.
absl::StatusOr<std::vector<int64_t>> TransposedIota(const std::vector<int64_t>& dims,
                                                    const std::vector<int64_t>& perm);

// ---- Asynchronous pairs ----------------------------------------------------

// The TPU compiler's name for the thread of what the SparseCores run.
inline constexpr std::string_view kSparseCoreThread = "sparsecore";
// A start whose collective the SparseCores run.
bool IsOffLoaded(const Instruction& start);
// The operation that an async-start wraps; the instruction itself otherwise.
const Instruction& WrappedBy(const Instruction& start);

// ---- Custom calls that the compiler knows ----------------------------------

// Target of the call that stands for memory with arbitrary content.
inline constexpr std::string_view kAllocateBuffer = "AllocateBuffer";
// The target of the call that names an array whose pieces, its operands, already lie one after the
// other.
inline constexpr std::string_view kConcatBitcast = "ConcatBitcast";
bool IsCallOf(const Instruction& instruction, std::string_view target);
// Calls that move a value between the memories of device and host.
inline constexpr std::string_view kMoveToHost = "MoveToHost";
enum class Placement { kToHost, kToDevice };
// nullopt: not a custom call that places a value.
std::optional<Placement> PlacementOf(const Instruction& instruction);
// JAX's name of a kind of memory that is the host's.
bool IsHostMemoryKind(std::string_view kind);

// ---- Frontend attributes ---------------------------------------------------

// Attributes that JAX and XLA define; those of tpusim are in annotations.h.
std::optional<std::string> FrontendAttribute(const Instruction& instruction,
                                             const std::string& key);
void SetFrontendAttribute(Instruction* instruction, const std::string& key,
                          const std::string& value);
void RemoveFrontendAttribute(Instruction* instruction, const std::string& key);

// ---- Literals --------------------------------------------------------------

// Elements of a literal in row-major order, converted; nullopt if the literal is
// missing (elided), of another kind (a float is no integer; pred counts as 0 and
// 1), or holds fewer elements than its shape says.
std::optional<std::vector<int64_t>> IntElements(const pb::LiteralProto& literal);
std::optional<std::vector<double>> RealElements(const pb::LiteralProto& literal);

// Returns the value of a scalar constant; nullopt: it is none, or was elided.
std::optional<int64_t> ScalarIntConstant(const Instruction& instruction);
// Integers and pred included.
std::optional<double> ScalarConstant(const Instruction& instruction);

// `value` is rounded or truncated to the type as a conversion in C would.
// TPUSIM_CHECK: the type is one of numbers.
pb::LiteralProto MakeScalarLiteral(PrimitiveType type, double value);
pb::LiteralProto MakeIntLiteral(PrimitiveType type, int64_t value);
// A vector (rank 1) of integers.
pb::LiteralProto MakeIntVectorLiteral(PrimitiveType type, const std::vector<int64_t>& values);

Instruction* AddConstant(Computation* computation, PrimitiveType type, double value,
                         std::string_view name_hint = "constant");
Instruction* AddIntConstant(Computation* computation, PrimitiveType type, int64_t value,
                            std::string_view name_hint = "constant");
Instruction* AddLiteral(Computation* computation, pb::LiteralProto literal,
                        std::string_view name_hint = "constant");

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_IR_ATTRIBUTES_H_
