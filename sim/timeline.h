// The timeline: the record of one simulated step.
//
// Totals of every device and, of the devices that the user wants to see, a recording
// of their spans (recording.h).
#ifndef TPUSIM_SIM_TIMELINE_H_
#define TPUSIM_SIM_TIMELINE_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "configs/memory.h"
#include "configs/topology.h"
#include "configs/units.h"
#include "models/events/causes.h"
#include "sim/recording/recording.h"
#include "sim/symmetry/folding_report.h"

namespace tpusim::sim {

struct DeviceTotals {
  Picoseconds finish{0};
  Picoseconds compute_busy{0};  // union of MXU and VPU busy time
  Picoseconds mxu_busy{0};
  Picoseconds vpu_busy{0};
  Picoseconds collective{0};        // union of time with a collective in flight
  Picoseconds exposed{0};           // ... and no compute slot busy
  configs::PerMemory<Bytes> moved;  // both ways
  configs::PerMemory<Bytes> peak_live;
  Picoseconds peak_live_hbm_at{0};  // first
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
  // Parts of the exposed time: the main stream waits for this collective, or for another transfer.
  Picoseconds waited{0};
  Picoseconds behind{0};
  // Time of the main stream, without the operations inside of this one, so that the intervals of
  // all operations do not overlap; and the part of it in which a compute slot was busy.
  Picoseconds main{0};
  Picoseconds main_busy{0};

  void Add(const OpTotals& other, int64_t times) {
    count += other.count * times;
    total += other.total * times;
    exposed += other.exposed * times;
    hbm_bytes += other.hbm_bytes * times;
    waited += other.waited * times;
    behind += other.behind * times;
    main += other.main * times;
    main_busy += other.main_busy * times;
  }
};

// The mean totals of an operation over all devices.
struct MeanOpTotals {
  double count = 0;
  Picoseconds main{0};
};

// The union of all collectives of one kind.
struct CollectiveKindTotals {
  std::string kind;
  Picoseconds in_flight{0};
  Picoseconds hidden{0};  // of it, that in which a compute slot was busy
};

// A compute slot was busy for an operation of the main stream while a collective was in flight.
struct Cover {
  int32_t collective = -1;
  int32_t by = -1;  // -1: outside of all operations
  Picoseconds time{0};
};

struct Timeline {
  Picoseconds step_time{0};
  int64_t events = 0;        // instructions retired + flow starts and ends
  int64_t chip_classes = 0;  // chips that were told apart
  FoldingReport folding;
  int32_t critical_device = 0;  // first device of the latest-finishing class
  std::vector<DeviceTotals> devices;
  std::vector<HostTotals> hosts;                    // empty in a single slice
  std::vector<OpTotals> ops;                        // on the critical device, by ProgramInfo::ops
  std::vector<MeanOpTotals> mean_ops;               // over all devices, likewise
  std::vector<Cover> covers;                        // of the critical device, every pair once
  std::vector<CollectiveKindTotals> kinds;          // likewise, by name
  std::vector<events::Causes::PathPart> critical_path;  // of the pod; adds up to the step
  Recording recording;                              // spans and counters of the recorded devices
  std::vector<int32_t> recorded_devices;
  std::vector<int32_t> class_of;  // by device; empty: not known
  int64_t recorded_steps = 0;  // spans of an operation or a ring, per row; 0 = all that there are
};

}  // namespace tpusim::sim

#endif  // TPUSIM_SIM_TIMELINE_H_
