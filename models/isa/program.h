// The instruction set: what the compiler hands to the machine.
//
// A PodProgram says, for every device of a slice, what each of its control streams does. It knows
// nothing of HLO and nothing of SystemC. Execution slots, DMA queues and links are servers in the
// machine; streams are the control that asks them for work.
//
//   tensor_core[i]   the main stream of a device: kernels in program order
//   collective[i]    collectives in flight beside it (one per concurrent slot)
//   sparse_core[i]   collectives that the SparseCores run
//   host             host transfers
//
// A device's program is its tensor_core[0] body. Other streams are driven from
// it by Start, which queues a body on a stream, and Done, which waits for it.
// A synchronous collective is a Start followed at once by its Done.
//
// SPMD programs are the same on most devices; `programs` holds the distinct
// ones and `program_of_device` says which device runs which. Bodies are shared: what programs
// have in common they Call.
//
// Peers are relative: an Rdma names a Route, and the route table says where that leads from each
// device. A device without an entry in a route (peer < 0) must not execute an instruction on it.
//
// The room answers of which instructions, kernels and streams a compiled program consists: what the
// lowering writes, the simulation executes and the printer shows; `PodProgram` is its entry point.
// Finding repeated parts in a finished program was tried and rejected: verifier, machine and
// fast-forward each had to know them. The lowering writes loops instead (iterations.h).
#ifndef TPUSIM_MODELS_ISA_PROGRAM_H_
#define TPUSIM_MODELS_ISA_PROGRAM_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "configs/memory.h"
#include "configs/topology.h"
#include "configs/units.h"
#include "models/isa/iterations.h"
#include "models/isa/program_info.h"

namespace tpusim::isa {

struct Instruction;
using Body = std::vector<Instruction>;
using SharedBody = std::shared_ptr<const Body>;

using configs::MemorySpace;
enum class NumberFormat { kBf16, kF32, kF32High, kF32Highest, kInt8, kInt4, kFp8, kInt32 };
enum class StreamKind {
  kTensorCore,
  kCollective,
  kSparseCore,
  kCopy,  // between memories of the chip
  kHost,
};

struct StreamId {
  StreamKind kind = StreamKind::kTensorCore;
  int32_t index = 0;
  auto operator<=>(const StreamId&) const = default;
};

// Work for the systolic arrays: an [m,k] x [k,n] product, weights [k,n]. Zero m means no matrix
// work. The number of passes follows from the format and the chip's parameters.
struct MxuWork {
  int64_t m = 0, k = 0, n = 0;
  NumberFormat format = NumberFormat::kBf16;
  // independent products of this size (batch)
  int64_t batch = 1;
  bool operator==(const MxuWork&) const = default;
};

// One step of compute. Vector slots count whole-register (sublanes x lanes x
// 32 bit) operations. Slots co-issue: the block takes as long as its fullest
// slot, plus `latency` for what does not overlap. Where the time of a step is stated, its slots are
// not counted: the arrays (`stated_products`) or the vector units are busy all the time.
struct Block {
  MxuWork mxu;
  int64_t valu = 0, eup = 0, xlu = 0, load = 0, store = 0;
  Cycles scalar{0};
  Cycles latency{0};
  Picoseconds stated{0};  // of a step of a kernel, with its overhead; 0: the slots count
  bool stated_products = false;
  bool operator==(const Block&) const = default;
};

enum class WindowKind { kInput, kOutput };

// The part of an operand that a kernel sees through VMEM. It moves when one of the grid dimensions
// in `moves_with` (bit d = grid dimension d) changes its index; a window that did not move is not
// transferred again, and an output window is written back when it is about to move and at the end.
struct Window {
  WindowKind kind = WindowKind::kInput;
  MemorySpace space = MemorySpace::kHbm;  // where the operand lives; kVmem moves nothing
  Bytes bytes;                            // of one full block
  int64_t rows = 1;                       // contiguous runs that one transfer has
  uint32_t moves_with = 0;
  int32_t buffers = 2;
  std::string operand;  // HLO name, for the disassembly
  bool operator==(const Window&) const = default;
};

// Steps `count` times; the last index covers `last_fraction` of a full block.
struct GridDim {
  int64_t count = 1;
  double last_fraction = 1.0;
  // Steps in full blocks.
  double FullSteps() const { return static_cast<double>(count - 1) + last_fraction; }
  bool operator==(const GridDim&) const = default;
};

// A software-pipelined loop of blocks over a grid (row-major, last dimension innermost): while step
// s computes, the windows of step s+1 are fetched and those of step s-1 written back.
struct Kernel {
  std::vector<GridDim> grid;  // empty = one step
  std::vector<Window> windows;
  Block block;
  // The kernel checks at the begin of every step what has arrived for collectives in flight, and
  // sends it on (Poll).
  bool polls = false;

  int64_t Steps() const {
    int64_t n = 1;
    for (const GridDim& d : grid) n *= d.count;
    return n;
  }
  double FullSteps() const {
    double n = 1;
    for (const GridDim& d : grid) n *= d.FullSteps();
    return n;
  }
  bool operator==(const Kernel&) const = default;
};

// Local memory to local memory.
struct Dma {
  MemorySpace from = MemorySpace::kHbm, to = MemorySpace::kVmem;
  Bytes bytes;
  int64_t rows = 1;
  bool operator==(const Dma&) const = default;
};

// Host memory <-> HBM over PCIe.
struct HostDma {
  bool to_host = false;
  Bytes bytes;
  bool operator==(const HostDma&) const = default;
};

// Adds what arrives to what is there, on the receiver's VPU or SparseCores,
// pipelined with the transfer in windows.
struct ReduceAdd {
  int64_t element_bytes = 4;
  int64_t valu_per_vreg = 1;  // vector operations per register of elements
  bool sparse_core = false;
  bool operator==(const ReduceAdd&) const = default;
};

// Writes to another chip's memory. `arrival_flag` of the receiver counts one
// when everything has arrived (and been added); `sent_flag` of the sender
// counts one when the last byte has left. -1 = no flag.
struct Rdma {
  int32_t route = 0;
  Bytes bytes;
  int64_t rows = 1;
  int32_t arrival_flag = -1;
  int32_t sent_flag = -1;
  MemorySpace from = MemorySpace::kHbm, to = MemorySpace::kHbm;
  std::optional<ReduceAdd> reduce;
};

// Raises a flag of a peer by one, without payload.
struct Signal {
  int32_t route = 0;
  int32_t flag = 0;
};

// Blocks the stream until the flag has counted to `count`, then takes that many off it.
struct Wait {
  int32_t flag = 0;
  int64_t count = 1;
};

// Blocks the stream until a kernel that polls begins its next step. Control that no unit of its
// own executes goes on when the TensorCore has a moment for it: between two blocks, or when it has
// nothing else to do, because the main stream waits for the Done of what the stream executes.
struct Poll {
  bool operator==(const Poll&) const = default;
};

struct Loop {
  int64_t count = 0;
  SharedBody body;
  // Names of a loop that was unrolled, where they differ from one iteration to the next; null: they
  // do not. Such a loop does not count as a loop: its iterations are executed as if they stood
  // here. It is never nested in another one, and all programs that have it share its iterations.
  std::shared_ptr<const Iterations> iterations = nullptr;
};

// Instructions that several programs or places share, and that are not stored at each of them: they
// are executed as if they stood here. It is none itself. Labels may begin inside and end outside.
struct Call {
  SharedBody body;
};

// The branch that this device takes was decided when the program was lowered.
struct Branch {
  int32_t taken = 0;
  std::vector<SharedBody> bodies;
};

// Brackets the instructions of one HLO operation: `op` indexes ProgramInfo::ops. Labels nest.
struct Label {
  int32_t op = -1;
  bool begin = true;
  bool operator==(const Label&) const = default;
};

// Live-memory accounting, no time: `buffer` indexes ProgramInfo::buffers.
struct Alloc {
  MemorySpace space = MemorySpace::kHbm;
  int32_t buffer = -1;
  bool operator==(const Alloc&) const = default;
};
struct Free {
  MemorySpace space = MemorySpace::kHbm;
  int32_t buffer = -1;
  bool operator==(const Free&) const = default;
};

// Queues `body` on another stream of the same device; `token` names this
// execution until the matching Done. Bodies queued on one stream run in order.
struct Start {
  StreamId stream;
  int32_t token = 0;
  SharedBody body;
};
struct Done {
  int32_t token = 0;
};

using InstructionKind = std::variant<Block, Kernel, Dma, HostDma, Rdma, Signal, Wait, Poll, Loop,
                                     Call, Branch, Label, Alloc, Free, Start, Done>;
struct Instruction {
  InstructionKind kind;
};

// The end of a route from one device, and its links: mostly one, to a neighbour. Between two slices
// there are none: hosts and their network cards carry the data.
struct RouteEnd {
  int32_t peer = -1;  // device
  absl::InlinedVector<configs::Link, 1> links;
  bool dcn = false;
};
// Returns how many hops a transfer of this device takes inside a slice: one per link of the route,
// or one between two devices of a chip. Each costs the latency of a hop.
inline int64_t Crossings(int64_t device, const RouteEnd& end) {
  if (end.dcn) return 0;
  if (end.links.empty()) return end.peer == device ? 0 : 1;
  return static_cast<int64_t>(end.links.size());
}
struct Route {
  std::string name;            // "ring x+"
  std::vector<RouteEnd> from;  // per source device
};

struct PodProgram {
  std::vector<SharedBody> programs;        // tensor_core[0] of each distinct program
  std::vector<int32_t> program_of_device;  // indexed by device id
  std::vector<Route> routes;
  int32_t flags = 0;   // flags per device
  int32_t tokens = 0;  // tokens per device
  ProgramInfo info;

  int64_t devices() const { return static_cast<int64_t>(program_of_device.size()); }
};

// The program as text that a person can follow beside the timeline.
std::string Disassemble(const PodProgram& program);

}  // namespace tpusim::isa

#endif  // TPUSIM_MODELS_ISA_PROGRAM_H_
