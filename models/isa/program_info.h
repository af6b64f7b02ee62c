// Facts of a program that the report needs: the operations behind the labels, buffers, peak memory,
// assumptions.
#ifndef TPUSIM_MODELS_ISA_PROGRAM_INFO_H_
#define TPUSIM_MODELS_ISA_PROGRAM_INFO_H_

#include <cstdint>
#include <string>
#include <vector>

#include "configs/memory.h"
#include "configs/record.h"
#include "configs/units.h"

namespace tpusim::isa {

// Why the main stream has to wait for a collective: what the compiler knows of the order that
// it chose. Facts of the program, not of a run.
enum class WaitReason {
  kSynchronous,  // it is not cut into a start and a done
  kDependency,   // what is next needs it, and what it sends is made right before
  kResource,     // as many transfers of its kind as may be are in flight
  kMemory,       // an order that hides more does not fit
  kSchedule,     // operations that do not depend on it are elsewhere in the order
};

// A collective as the lowering chose to run it. Times are for one occurrence.
struct CollectiveInfo {
  std::string kind;       // "all-reduce", "collective-permute", ...
  std::string algorithm;  // "ring 2 directions over x", ...
  std::string axes;       // mesh axes, or "" when the group is not axis-aligned
  int64_t group_size = 0;
  Bytes bytes;           // V: full array of the group per device (all-gather: gathered size)
  Picoseconds expected;  // closed form of the algorithm used
  Picoseconds bound;     // physical bound at the nominal link rate
  bool dcn = false;      // between slices, which is what the bound is of then
  WaitReason reason = WaitReason::kDependency;
  std::string reason_text;    // half a sentence, "v6e has no asynchronous all-gathers"
  int32_t reshard_site = -1;  // index into ProgramInfo::reshard_sites
};

// A place where a value is moved between two shardings although the program does not ask for it,
// the same of equal layers taken together. Names are those before partitioning.
struct ReshardSite {
  // --constrain VALUE=SHARDING that may avoid it.
  struct Constraint {
    std::string text;
    bool of_result = false;  // of the op that wants the value otherwise, not of the value
  };
  std::string kind;             // what moves most of it: "all-gather", "all-to-all", ...
  std::string value, user;      // what is moved, the op that wants it otherwise
  std::string scope, source;    // of that op
  std::string shape, from, to;  // of the whole value
  std::string why;              // which axes, and which arguments they come from
  Bytes whole{0};               // the whole value
  // The result of the op, of floating-point numbers, which is not split as the value is although it
  // has that dimension, too: what is made of it has lost the sharding. 0: no such place.
  Bytes lost_by{0};
  Bytes bytes{0};                       // that a device receives, once, times links
  int64_t places = 0;                   // how many there are of it
  std::vector<Constraint> constraints;  // the best guess first
};

// An HLO operation that instructions are labelled with. Figures are per execution on one device.
struct OpInfo {
  std::string name;      // HLO instruction name, "fusion.3"
  std::string category;  // XProf's hlo_category: "convolution fusion", "all-reduce", ...
  std::string scope;     // op_name metadata: "jit(f)/layer/dot_general"
  std::string source;    // "file.py:12"
  std::string shape;     // result shape text
  Flops flops{0};        // all arithmetic
  Flops model_flops{0};  // without recomputation
  Bytes hbm_bytes{0};
  // The kernel's time by the TPU compiler's estimate; 0: it gave none.
  Picoseconds compiler_estimate{0};
  int32_t collective = -1;   // index into ProgramInfo::collectives
  bool sparse_core = false;  // runs on the SparseCores
  bool is_async = false;     // the start of a start/done pair
  bool carried = false;      // a start or done of what kernels carry (Poll)
  int32_t starts = -1;       // of a start: the operation that runs beside the main stream from then
  int32_t waits_for = -1;    // of a done: the operation that it waits for
};

struct BufferInfo {
  std::string name;  // HLO value it holds
  Bytes bytes;
  int32_t owner = -1;  // index into ProgramInfo::owners
};

// An array in HBM when a program needs most of it.
struct LiveArray {
  std::string name;    // HLO instruction that makes it
  std::string owner;   // "arguments", "optimizer state", "saved activations", ...
  std::string scope;   // op_name metadata; of an argument its name in the program
  std::string source;  // "file.py:12"
  std::string shape;   // with its layout
  Bytes bytes;         // as it lies in memory
  Bytes unpadded;      // without what tiles add
};

// VMEM of a device when most of it is in use.
struct VmemAtPeak {
  Bytes bytes{0}, capacity{0};    // arrays and windows; of all cores of the device
  Bytes windows{0};               // of the operation, if it is a kernel
  std::string operation;          // that is executed then
  std::vector<LiveArray> arrays;  // largest first; their owners say how they came there
};

struct ProgramInfo {
  std::string module_name;
  int64_t partitions = 1;
  std::vector<OpInfo> ops;
  std::vector<CollectiveInfo> collectives;
  std::vector<ReshardSite> reshard_sites;
  std::vector<BufferInfo> buffers;
  std::vector<std::string> owners;  // of buffers: "arguments", "temporaries", ...
  // Bytes of the memories that are planned, per device, of HBM with the holes; 0 for memories that
  // the chip does not have.
  configs::PerMemory<Bytes> peak, usable;
  Bytes hbm_fragmentation{0};           // of the peak: holes between arrays
  std::string peak_at;                  // the operation during which most is live
  std::vector<LiveArray> live_at_peak;  // in HBM, largest first
  VmemAtPeak vmem_at_peak;
  // Totals of a device and step over the whole program, loops counted.
  Flops model_flops{0};
  Flops hardware_flops{0};
  Flops mxu_flops{0};        // matrix work in bf16-pass equivalents (int32 = ten passes)
  Bytes hbm_bytes{0};        // HBM bytes that must move (reads and writes)
  std::string device_order;  // the rule that was used
  // Assumptions and warnings of the compiler; decisions, where they were asked for.
  std::vector<Record> records;
};

// Returns the operation that the main stream waits for in this one of its operations; -1: none.
inline int32_t WaitsFor(const ProgramInfo& info, int32_t op) {
  return info.ops[op].collective >= 0 ? op : info.ops[op].waits_for;
}

}  // namespace tpusim::isa

#endif  // TPUSIM_MODELS_ISA_PROGRAM_INFO_H_
