// What happened: the record of one simulated step.
//
// Spans are closed intervals of work on a track of a device; the recorder keeps
// them only for the devices that the user wants to see, while the totals below
// are kept for every device.
#ifndef TPUSIM_SIM_TIMELINE_H_
#define TPUSIM_SIM_TIMELINE_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "configs/topology.h"
#include "configs/units.h"

namespace tpusim::sim {

enum class Track {
  kTensorCore,  // HLO operations of the main stream (labels; nest)
  kMxu,         // matrix slots busy
  kVpu,         // vector slots busy with blocks; reduce-adds are flows
  kCollective,  // HLO collectives in flight (labels on collective streams)
  kSparseCore,  // those that the SparseCores run
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
  Picoseconds start, end;
  Bytes bytes{0};
  uint64_t flow_out = 0;  // non-zero: an arrow leaves this span's start
  uint64_t flow_in = 0;   // non-zero: an arrow ends here
};

enum class Counter { kHbmBandwidth, kLinkBandwidth, kLiveHbm, kCmemBandwidth, kLiveCmem };
struct CounterSample {
  int32_t device = 0;
  Counter counter = Counter::kHbmBandwidth;
  int32_t lane = 0;  // Direction for kLinkBandwidth
  Picoseconds time;
  double value = 0;  // bytes per second, bytes
};

// One execution of one labelled operation on one device.
struct OpExecution {
  int32_t device = 0;
  int32_t op = -1;
  Picoseconds start, end;
};

struct DeviceTotals {
  Picoseconds finish{0};
  Picoseconds compute_busy{0};  // union of MXU and VPU busy time
  Picoseconds mxu_busy{0};
  Picoseconds vpu_busy{0};
  Picoseconds collective{0};  // union of time with a collective in flight
  Picoseconds exposed{0};     // ... and no compute slot busy
  Bytes hbm_bytes{0};
  Bytes peak_live_hbm{0};
  Bytes cmem_bytes{0};
  Bytes peak_live_cmem{0};
  Bytes to_host{0};
  Bytes from_host{0};
  std::array<Bytes, configs::kDirections> sent{};      // per link leaving this chip
  std::array<Bytes, configs::kDirections> received{};  // per link arriving here
};

// Through the network card of a host, to and from other slices.
struct HostTotals {
  Bytes sent{0};
  Bytes received{0};
};

struct OpTotals {
  int64_t count = 0;
  Picoseconds total{0};
  Picoseconds exposed{0};  // collectives only
  Bytes hbm_bytes{0};      // read and written
};

// What was told apart, and why (symmetry/symmetry.h).
struct FoldingReport {
  struct Step {
    std::string reason;
    int64_t device_classes = 0;  // after it
  };
  int64_t device_classes = 0;
  int64_t simulations = 1;  // all but the last met a set of routes that splits a class
  std::vector<Step> steps;
  Picoseconds ignored_skew{0};  // of arrivals, by an approximate folding
};

struct Timeline {
  Picoseconds step_time{0};
  int64_t events = 0;           // instructions retired + flow starts and ends
  int64_t chip_classes = 0;     // chips that were told apart
  FoldingReport folding;
  int32_t critical_device = 0;  // first device of the latest-finishing class
  std::vector<DeviceTotals> devices;
  std::vector<HostTotals> hosts;  // empty in a single slice
  std::vector<OpTotals> ops;      // on the critical device, by ProgramInfo::ops
  std::vector<Span> spans;        // of the recorded devices, by end time
  std::vector<CounterSample> counters;
  std::vector<int32_t> recorded_devices;
};

}  // namespace tpusim::sim

#endif  // TPUSIM_SIM_TIMELINE_H_
