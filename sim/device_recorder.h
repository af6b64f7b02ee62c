// The recorder of one device, or of all devices of a class: the probe of its modules.
//
// How totals are kept without spans. Busy intervals are reported when they begin, with their
// length, so they come in order of start. The union of those that have begun is then known by two
// numbers: its measure so far and how far it reaches; its measure up to now is the first minus what
// lies in the future. The time of an interval that was not covered is its length minus the growth
// of that measure. This is how exposed communication is found: the time in which a collective is in
// flight less the time in which a compute slot was busy meanwhile.
//
//   compute busy   the MXU or the VPU works in a block. Reducing transfers use
//                  some of the VPU too, but as a share of it (chip/units.h): they do
//                  not count, or a collective would hide itself.
//   in flight      a label of an operation that is a collective is open on a
//                  stream other than the TensorCore's.
//
// What hides a collective and what the main stream does meanwhile: overlap.h.
#ifndef TPUSIM_SIM_DEVICE_RECORDER_H_
#define TPUSIM_SIM_DEVICE_RECORDER_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "models/events/probe.h"
#include "models/isa/program.h"
#include "models/steady/state.h"
#include "sim/overlap.h"
#include "sim/recording/recording.h"
#include "sim/recording/step_merger.h"
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

// Returns the track that shows the operations of a stream.
Track TrackOf(isa::StreamKind kind);

class DeviceRecorder;

// Records that the recorders of all devices of a run share. While a mark is set
// (Recorder::SetMark), every total that changes first goes to a journal with the value that it had.
struct SharedRecords {
  struct OpEntry {
    DeviceRecorder* device = nullptr;
    int32_t op = -1;
    OpTotals totals;
  };
  struct CoverEntry {
    DeviceRecorder* device = nullptr;
    size_t row = 0;
    Picoseconds time{0};
  };

  const isa::PodProgram& program;
  const CollectiveKinds kinds;
  const int64_t steps;  // SimulationOptions::record_steps
  const bool work;      // SimulationOptions::record_work
  Recording recording = {};
  std::vector<OpEntry> op_journal = {};
  std::vector<CoverEntry> cover_journal = {};
  int32_t marks = 0;  // set so far
  bool marked = false;
};

class DeviceRecorder : public events::Probe {
 public:
  // `shown` are the devices of the class whose spans are kept; `finish` is when the last that the
  // class did or received ended.
  DeviceRecorder(SharedRecords& shared, Picoseconds& finish, std::vector<int32_t> shown);

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
  // Visits everything but the totals of operations, which a mark covers (Recorder::SetMark).
  void Visit(steady::StateVisitor& visitor);

 private:
  friend class Recorder;
  // Records the span on the devices shown. Steps of kernels may be merged.
  void Show(Track track, int32_t lane, const Span& span);
  void ShowStep(Track track, int32_t lane, const Span& span);
  // Records the steps that are merged so far.
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
  };

  struct Begun {
    Picoseconds at{-1};
    int32_t times = 0;  // before, at that moment
  };

  Picoseconds ComputeUpTo(Picoseconds now) const {
    return compute_.UpTo(now) +
           (repeating_ == nullptr ? Picoseconds(0) : repeating_->ComputeSoFar());
  }
  void Finish(Picoseconds at) { finish_ = std::max(finish_, at); }
  void AddHbm(int32_t op, Bytes bytes) {
    if (op >= 0) ChangeOp(op).hbm_bytes += bytes;
  }
  // Returns the totals of an operation to be changed: their present values go to the journal if
  // this is the first change since the last mark.
  OpTotals& ChangeOp(int32_t op);
  // Returns the time for which an operation hides a collective, to be changed like ChangeOp.
  Picoseconds& ChangeCover(int32_t collective, int32_t by);
  // The time up to now is added to the totals of what has been under way (overlap.h).
  void SettleOverlap(Picoseconds now);

  SharedRecords& shared_;
  const std::vector<int32_t> shown_;
  std::vector<ShownRow> rows_;  // in the order of their first span
  int64_t run_ = 0;             // begins and ends of operations on the main stream
  DeviceTotals totals_;  // but for its end
  Picoseconds& finish_;
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
};

}  // namespace tpusim::sim

#endif  // TPUSIM_SIM_DEVICE_RECORDER_H_
