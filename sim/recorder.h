// What is remembered of a simulation.
//
// For every device, totals: a few counters per device and per operation, updated
// while the simulation runs. For the devices that are recorded, also
// the spans and counter samples behind them, in a recording that is small (recording.h)
// and stays so for large kernels (step_merger.h).
//
// How totals are kept without spans. Busy intervals are reported when they begin,
// with their length, so they come in order of start. The union of those that
// have begun is then known by two numbers: its measure so far and how far it
// reaches; its measure up to now is the first minus what lies in the future.
// The time of an interval that was not covered is its length minus the growth of
// that measure. This is how exposed communication is found: the time in which a
// collective is in flight less the time in which a compute slot was busy
// meanwhile.
//
//   compute busy   the MXU or the VPU works in a block. Reducing transfers use
//                  some of the VPU too, but as a share of it (chip/vpu.h): they do
//                  not count, or a collective would hide itself.
//   in flight      a label of an operation that is a collective is open on a
//                  stream other than the TensorCore's.
//
// What hides a collective and what the main stream does meanwhile: overlap.h.
#ifndef TPUSIM_SIM_RECORDER_H_
#define TPUSIM_SIM_RECORDER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "configs/topology.h"
#include "models/chip/device.h"
#include "models/events/probe.h"
#include "models/flow/network.h"
#include "models/ici/router.h"
#include "models/isa/program.h"
#include "models/steady/state.h"
#include "sim/overlap.h"
#include "sim/recording/recording.h"
#include "sim/recording/step_merger.h"
#include "sim/symmetry/classes.h"
#include "sim/timeline.h"

namespace tpusim::sim {

// The union of intervals that come in order of their starts.
class BusyUnion {
 public:
  void Add(Picoseconds start, Picoseconds end);
  // Measure of the union up to `now`, which no interval added later precedes.
  Picoseconds UpTo(Picoseconds now) const;
  // Adds intervals of this measure, all of them between the last one and `until`.
  void Extend(Picoseconds measure, Picoseconds until);
  void Visit(steady::StateVisitor& visitor) {
    visitor.Counter(measure_);
    visitor.Pending(until_);
  }
  Picoseconds Total() const { return measure_; }

 private:
  Picoseconds measure_{0};
  Picoseconds until_{0};
};

class Recorder;

class DeviceRecorder : public events::Probe {
 public:
  // `shown`: the devices of its class whose spans are kept.
  DeviceRecorder(Recorder& recorder, int32_t device, std::vector<int32_t> shown);

  void LabelBegan(const events::StreamRef& stream, int32_t op) override;
  void LabelEnded(const events::StreamRef& stream, int32_t op) override;
  void BlockBegan(int32_t op, int64_t step, Picoseconds start, Picoseconds mxu,
                  Picoseconds vpu) override;
  void TransferEnded(int32_t channel, int32_t op, int64_t step, Picoseconds start, Picoseconds end,
                     Bytes bytes, Bytes hbm) override;
  void RepeatBegan(const events::RepeatingCore& core) override;
  void RepeatEnded(int32_t op, Picoseconds until, Picoseconds mxu, Picoseconds vpu,
                   Picoseconds compute, Bytes hbm) override;
  bool WantsEverything() const override { return !shown_.empty(); }
  void HostTransferEnded(int32_t op, bool to_host, Picoseconds start, Bytes bytes) override;
  void LiveBytesChanged(isa::MemorySpace space, Bytes live, int32_t buffer, bool added) override;
  void StreamFinished() override;
  // All but the totals of operations, for which there are marks (Recorder::SetMark).
  void Visit(steady::StateVisitor& visitor);

 private:
  friend class Recorder;
  // On the devices shown. Steps of kernels may be merged.
  void Show(Track track, int32_t lane, const Span& span);
  void ShowStep(Track track, int32_t lane, const Span& span);
  // What was merged is recorded.
  void FlushSteps();
  // A row of the recording.
  struct ShownRow {
    Track track = Track::kTensorCore;
    int32_t lane = 0;
    Recording::Place place;
    StepMerger steps;
  };
  ShownRow& Row(Track track, int32_t lane);

  struct OpenLabel {
    int32_t op = -1;
    int32_t order = 0;  // see Span
    Picoseconds began;
    Picoseconds compute;  // compute busy when it began
  };

  struct Begun {
    Picoseconds at{-1};
    int32_t times = 0;  // before, at that moment
  };

  Picoseconds ComputeUpTo(Picoseconds now) const {
    return compute_.UpTo(now) +
           (repeating_ == nullptr ? Picoseconds(0) : repeating_->ComputeSoFar());
  }
  void AddHbm(int32_t op, Bytes bytes) {
    if (op >= 0) ChangeOp(op).hbm_bytes += bytes;
  }
  // The totals of an operation, about to change: as they are now they go to the journal if
  // this is their first change since the last mark.
  OpTotals& ChangeOp(int32_t op);
  // Likewise of how long an operation hides a collective.
  Picoseconds& ChangeCover(int32_t collective, int32_t by);
  void SettleOverlap(Picoseconds now, Picoseconds compute);

  Recorder& recorder_;
  const int32_t device_;
  const std::vector<int32_t> shown_;
  std::vector<ShownRow> rows_;  // in the order of their first span
  int64_t run_ = 0;             // begins and ends of operations on the main stream
  DeviceTotals totals_;
  std::vector<Bytes> owned_;  // live in HBM, by owner; of recorded devices
  std::vector<OpTotals> ops_;
  std::vector<int32_t> changed_;              // per operation, the last mark before its change
  std::vector<std::vector<OpenLabel>> open_;  // per stream
  std::vector<Begun> begun_;                  // per stream, the last
  BusyUnion compute_;
  const events::RepeatingCore* repeating_ = nullptr;
  Overlap overlap_;
  CoverTable covers_;
  std::vector<int32_t> covers_changed_;  // by row, as changed_
  int32_t in_flight_ = 0;
  Picoseconds in_flight_since_{0};
  Picoseconds in_flight_compute_{0};
};

class Recorder : public ici::FabricProbe {
 public:
  // `steps`, `work`: see SimulationOptions::record_steps and record_work.
  Recorder(const configs::Config& config, const isa::PodProgram& program, const Classes& classes,
           const std::vector<int32_t>& record_devices, int64_t steps = 0, bool work = true);

  // Of the device that represents `id`.
  DeviceRecorder& device(int32_t id) { return *devices_[classes_.devices.Representative(id)]; }
  const std::vector<int32_t>& recorded_devices() const { return recorded_; }

  void RdmaEnded(const ici::RdmaRecord& record) override;

  // For what moves time (fast_forward.h).
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
  // As if what was recorded since the mark, which took `period`, had happened `times` more
  // times, one after the other.
  void Repeat(const Mark& mark, Picoseconds period, int64_t times);
  // Likewise in an unrolled loop: each time by the operations so many iterations later.
  // Spans have no such names: there must be no recorded device.
  void Repeat(const Mark& mark, int64_t times, const isa::Iterations& iterations,
              int64_t per_period);

  // Samples the rate of a resource whenever it changes.
  void WatchRate(flow::ResourceId resource, int32_t device, Counter counter, int32_t lane);
  void ObserveRates(flow::Network& network);

  // Moves what was recorded into a timeline. Still missing there: bytes that only
  // the machine knows (HBM, links) and the number of events.
  Timeline Finish();

 private:
  friend class DeviceRecorder;
  struct Watch {
    std::vector<int32_t> devices;  // one class
    Counter counter = Counter::kHbmBandwidth;
    int32_t lane = 0;
    RateThinner rates{0};
  };
  struct JournalEntry {
    DeviceRecorder* device = nullptr;
    int32_t op = -1;
    OpTotals before;
  };
  struct CoverEntry {
    DeviceRecorder* device = nullptr;
    size_t row = 0;
    Picoseconds before{0};
  };
  // The recorded device that shows the links of this chip, -1 = none.
  int32_t ShownOn(int64_t chip) const { return shown_on_chip_[chip]; }
  bool IsRecorded(int32_t device) const;
  struct Sender {
    int32_t device = 0;
    int32_t route = 0;  // by its own name
  };
  // Of one class, the senders on a route of its representative that leave a trace on a recorded
  // device.
  const std::vector<Sender>& VisibleSenders(int32_t route, int32_t device_class);
  void ShowRdma(const ici::RdmaRecord& record, const Sender& sender);
  void FlushMerged();

  const isa::PodProgram& program_;
  const Classes& classes_;
  const int64_t devices_per_chip_;
  std::vector<int32_t> recorded_;
  std::vector<std::unique_ptr<DeviceRecorder>> devices_;  // representatives only
  std::vector<int32_t> shown_on_chip_;
  std::vector<std::vector<Watch>> watches_;                // by resource
  std::vector<std::vector<std::vector<Sender>>> visible_;  // by route and class, when first asked
  const int64_t steps_;
  const bool work_;
  const CollectiveKinds kinds_;
  Recording recording_;
  uint64_t arrows_ = 0;
  std::vector<JournalEntry> journal_;
  std::vector<CoverEntry> cover_journal_;
  int32_t marks_ = 0;  // set so far
  bool marked_ = false;
};

}  // namespace tpusim::sim

#endif  // TPUSIM_SIM_RECORDER_H_
