// What is known about a program before it runs, and has to reach the report:
// the operations behind the labels, buffers, peak memory, what was assumed.
#ifndef TPUSIM_MODELS_ISA_PROGRAM_INFO_H_
#define TPUSIM_MODELS_ISA_PROGRAM_INFO_H_

#include <cstdint>
#include <string>
#include <vector>

#include "configs/units.h"

namespace tpusim::isa {

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
};

// An HLO operation that instructions are labelled with. Figures are per
// execution on one device.
struct OpInfo {
  std::string name;      // HLO instruction name, "fusion.3"
  std::string category;  // XProf's hlo_category: "convolution fusion", "all-reduce", ...
  std::string scope;     // op_name metadata: "jit(f)/layer/dot_general"
  std::string source;    // "file.py:12"
  std::string shape;     // result shape text
  Flops flops{0};        // all arithmetic
  Flops model_flops{0};  // without recomputation
  Bytes hbm_bytes{0};
  int32_t collective = -1;   // index into ProgramInfo::collectives
  bool sparse_core = false;  // runs on the SparseCores
  bool is_async = false;     // the start of a start/done pair
};

struct BufferInfo {
  std::string name;  // HLO value it holds
  Bytes bytes;
};

struct ProgramInfo {
  std::string module_name;
  int64_t partitions = 1;
  std::vector<OpInfo> ops;
  std::vector<CollectiveInfo> collectives;
  std::vector<BufferInfo> buffers;
  Bytes peak_hbm{0};  // per device, from live ranges
  Bytes usable_hbm{0};
  Bytes peak_cmem{0};  // likewise; 0 without CMEM
  Bytes usable_cmem{0};
  std::vector<BufferInfo> largest_live;  // at the peak, largest first
  // Per device and step: totals over the whole program, loops counted.
  Flops model_flops{0};
  Flops hardware_flops{0};
  Flops mxu_flops{0};        // matrix work in bf16-pass equivalents (int32 = ten passes)
  Bytes hbm_bytes{0};        // HBM bytes that must move (reads and writes)
  std::string device_order;  // the rule that was used
  std::vector<std::string> assumptions;
  std::vector<std::string> warnings;
};

}  // namespace tpusim::isa

#endif  // TPUSIM_MODELS_ISA_PROGRAM_INFO_H_
