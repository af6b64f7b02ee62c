// A span is a closed interval of work on a track of a device, a sample the value of a
// counter from a moment on.
#ifndef TPUSIM_SIM_RECORDING_SPAN_H_
#define TPUSIM_SIM_RECORDING_SPAN_H_

#include <cstdint>

#include "configs/memory.h"
#include "configs/units.h"

namespace tpusim::sim {

enum class Track {
  kTensorCore,  // HLO operations of the main stream (labels; nest)
  kMxu,         // matrix slots busy
  kVpu,         // vector slots busy with blocks; reduce-adds are flows
  kCollective,  // HLO collectives in flight (labels on collective streams)
  kSparseCore,  // those that the SparseCores run
  kCopies,      // asynchronous copies between memories of the chip (labels)
  kHbmDma,      // kernel windows, prefetches; also those of CMEM
  kIci,         // transfers leaving on a link; `lane` = Direction
  kDcn,         // transfers leaving for other slices
  kHost,
};

struct Span {
  int32_t device = 0;
  Track track = Track::kTensorCore;
  int32_t lane = 0;   // stream index, direction, DMA slot
  int32_t op = -1;    // ProgramInfo::ops
  int64_t step = -1;  // grid step, -1 = none
  // Only operations have an order, which have no grid step: how many of its stream began before it
  // at the same moment.
  int32_t order = 0;
  Picoseconds start, end;
  Bytes bytes{0};
  int64_t merged = 0;     // of how many this one was made (step_merger.h); 0 = it is one
  Picoseconds busy{0};    // if merged: the sum of their lengths
  uint64_t flow_out = 0;  // non-zero: an arrow leaves this span's start
  uint64_t flow_in = 0;   // non-zero: an arrow ends here
};

enum class Counter {
  kBandwidth,  // of a memory
  kLinkBandwidth,
  kLive,      // in a memory
  kOwnedHbm,  // of what is live in HBM
};
struct CounterSample {
  int32_t device = 0;
  Counter counter = Counter::kBandwidth;
  int32_t lane =
      0;  // a memory's configs::IndexOf, Direction for kLinkBandwidth, owner for kOwnedHbm
  Picoseconds time;
  double value = 0;  // bytes per second, bytes
};

}  // namespace tpusim::sim

#endif  // TPUSIM_SIM_RECORDING_SPAN_H_
