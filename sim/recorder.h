// The record of a simulation.
//
// For every device, totals: a few counters per device and per operation, updated
// while the simulation runs (device_recorder.h). For the devices that are recorded, also
// the spans and counter samples behind them, in a recording that is small (recording.h)
// and stays so for large kernels (step_merger.h).
#ifndef TPUSIM_SIM_RECORDER_H_
#define TPUSIM_SIM_RECORDER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "configs/topology.h"
#include "models/flow/network.h"
#include "models/ici/router.h"
#include "models/isa/program.h"
#include "models/steady/state.h"
#include "sim/device_recorder.h"
#include "sim/overlap.h"
#include "sim/recording/recording.h"
#include "sim/recording/step_merger.h"
#include "sim/symmetry/classes.h"
#include "sim/timeline.h"

namespace tpusim::sim {

class Recorder : public ici::FabricProbe {
 public:
  // `steps`, `work`: see SimulationOptions::record_steps and record_work.
  Recorder(const configs::Config& config, const isa::PodProgram& program, const Classes& classes,
           const std::vector<int32_t>& record_devices, int64_t steps = 0, bool work = true);

  // Returns the recorder of the device that represents `id`.
  DeviceRecorder& device(int32_t id) { return *devices_[classes_.devices.Representative(id)]; }
  const std::vector<int32_t>& recorded_devices() const { return recorded_; }

  void RdmaEnded(const ici::RdmaRecord& record) override;

  // Settles what is under way; FastForward calls it before it reads a state and sets a mark.
  void Settle(Picoseconds now);
  void Visit(steady::StateVisitor& visitor);
  // A moment to which records can be compared later. Totals of operations are many and few
  // of them change, so a mark is a place in a journal of the values that they had.
  struct Mark {
    size_t journal = 0, covers = 0;
    Recording::Mark recording;
    uint64_t arrows = 0;
  };
  Mark SetMark();
  // No mark is needed any more.
  void DropMarks();
  // Adds what was recorded since the mark, which took `period`, `times` more times, one after the
  // other.
  void Repeat(const Mark& mark, Picoseconds period, int64_t times);
  // Does the same where passes have other names: each time for the operations so many iterations
  // later. Spans have no such names: there must be no recorded device.
  void Repeat(const Mark& mark, int64_t times, const isa::Iterations& iterations,
              int64_t per_period);

  // Samples the rate of a resource whenever it changes.
  void WatchRate(flow::ResourceId resource, int32_t device, Counter counter, int32_t lane);
  void ObserveRates(flow::Network& network);

  // Moves what was recorded into a timeline. Still missing there: bytes that only
  // the machine knows (HBM, links) and the number of events.
  Timeline Finish();

 private:
  struct Watch {
    std::vector<int32_t> devices;  // one class
    Counter counter = Counter::kBandwidth;
    int32_t lane = 0;
    RateThinner rates{0};
  };
  struct Added {
    std::vector<SharedRecords::OpEntry> ops;
    std::vector<SharedRecords::CoverEntry> covers;
  };
  // Returns what was added to every operation and cover since the mark.
  Added AddedSince(const Mark& mark) const;
  // The recorded device that shows the links of this chip, -1 = none.
  int32_t ShownOn(int64_t chip) const { return shown_on_chip_[chip]; }
  bool IsRecorded(int32_t device) const;
  struct Sender {
    int32_t device = 0;
    int32_t route = 0;  // by its own name
  };
  // Returns the senders of one class, on a route of its representative, that leave a trace on a
  // recorded device.
  const std::vector<Sender>& VisibleSenders(int32_t route, int32_t device_class);
  void ShowRdma(const ici::RdmaRecord& record, const Sender& sender);
  void FlushMerged();
  std::vector<MeanOpTotals> MeanOps() const;

  const Classes& classes_;
  const int64_t devices_per_chip_;
  std::vector<int32_t> recorded_;
  std::vector<Picoseconds> finishes_;  // by class: when the last that it did, or received, ended
  std::vector<std::unique_ptr<DeviceRecorder>> devices_;  // representatives only
  std::vector<int32_t> shown_on_chip_;
  std::vector<std::vector<Watch>> watches_;                // by resource
  std::vector<std::vector<std::vector<Sender>>> visible_;  // by route and class, when first asked
  SharedRecords shared_;
  uint64_t arrows_ = 0;
};

}  // namespace tpusim::sim

#endif  // TPUSIM_SIM_RECORDER_H_
