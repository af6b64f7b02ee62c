#include "sim/device_recorder.h"

#include <algorithm>
#include <utility>

#include "configs/memory.h"
#include "configs/status_macros.h"
#include "models/events/sim_time.h"

namespace tpusim::sim {

using events::Now;

Track TrackOf(isa::StreamKind kind) {
  switch (kind) {
    case isa::StreamKind::kTensorCore:
      return Track::kTensorCore;
    case isa::StreamKind::kCollective:
      return Track::kCollective;
    case isa::StreamKind::kSparseCore:
      return Track::kSparseCore;
    case isa::StreamKind::kCopy:
      return Track::kCopies;
    case isa::StreamKind::kHost:
      break;
  }
  return Track::kHost;
}

void BusyUnion::Add(Picoseconds start, Picoseconds end) {
  if (end <= until_) return;
  measure_ += end - std::max(start, until_);
  until_ = end;
}

void BusyUnion::Extend(Picoseconds measure, Picoseconds until) {
  measure_ += measure;
  until_ = std::max(until_, until);
}

Picoseconds BusyUnion::UpTo(Picoseconds now) const {
  // Beyond `now` the union is one interval: everything in it has begun already.
  return until_ > now ? measure_ - (until_ - now) : measure_;
}

DeviceRecorder::DeviceRecorder(SharedRecords& shared, Picoseconds& finish,
                               std::vector<int32_t> shown)
    : shared_(shared),
      shown_(std::move(shown)),
      finish_(finish),
      ops_(shared.program.info.ops.size()),
      changed_(shared.program.info.ops.size(), 0),
      overlap_(shared.program.info, shared.kinds) {}

DeviceRecorder::ShownRow& DeviceRecorder::Row(Track track, int32_t lane) {
  for (ShownRow& row : rows_) {
    if (row.track == track && row.lane == lane) return row;
  }
  const Recording::Place place = shared_.recording.PlaceOf(shown_, track, lane);
  rows_.push_back({track, lane, place, StepMerger(place)});
  return rows_.back();
}

void DeviceRecorder::Show(Track track, int32_t lane, const Span& span) {
  shared_.recording.Add(Row(track, lane).place, span);
}

void DeviceRecorder::ShowStep(Track track, int32_t lane, const Span& span) {
  if (!shared_.work) return;
  Row(track, lane).steps.Add(shared_.recording, span.step < 0 ? 0 : shared_.steps, run_, span);
}

void DeviceRecorder::FlushSteps() {
  for (ShownRow& row : rows_) row.steps.Flush(shared_.recording);
}

void DeviceRecorder::LabelBegan(const events::StreamRef& stream, int32_t op) {
  const Picoseconds now = Now();
  const bool main = stream.id.kind == isa::StreamKind::kTensorCore;
  const bool collective = shared_.program.info.ops[op].collective >= 0 && !main;
  if (main || collective) SettleOverlap(now);
  if (main) {
    ++run_;
    overlap_.MainBegan(op);
  }
  if (static_cast<int32_t>(open_.size()) <= stream.ordinal) {
    open_.resize(stream.ordinal + 1);
    begun_.resize(stream.ordinal + 1);
  }
  Begun& begun = begun_[stream.ordinal];
  begun = {now, begun.at == now ? begun.times + 1 : 0};
  open_[stream.ordinal].push_back({op, begun.times, now});
  if (collective) overlap_.CollectiveBegan(op);
}

void DeviceRecorder::LabelEnded(const events::StreamRef& stream, int32_t op) {
  const OpenLabel label = open_[stream.ordinal].back();
  open_[stream.ordinal].pop_back();
  TPUSIM_CHECK(label.op == op, "labels do not nest");
  const Picoseconds now = Now();
  const bool main = stream.id.kind == isa::StreamKind::kTensorCore;
  const bool collective = shared_.program.info.ops[op].collective >= 0;
  if (main || collective) SettleOverlap(now);
  if (main) {
    ++run_;
    overlap_.MainEnded();
  } else if (collective) {
    overlap_.CollectiveEnded(op);
  }
  // A collective is counted where it is in flight, not where it is waited for, and its time is
  // settled; a copy beside the main stream has an operation of its own there.
  if (!collective || !main) {
    OpTotals& totals = ChangeOp(op);
    ++totals.count;
    if (!collective) totals.total += now - label.began;
  }
  if (shown_.empty()) return;
  Span span;
  span.op = op;
  span.start = label.began;
  span.end = now;
  span.order = label.order;
  Show(TrackOf(stream.id.kind), stream.id.index, span);
}

void DeviceRecorder::BlockBegan(int32_t op, int64_t step, Picoseconds start, Picoseconds mxu,
                                Picoseconds vpu) {
  totals_.mxu_busy += mxu;
  totals_.vpu_busy += vpu;
  compute_.Add(start, start + std::max(mxu, vpu));
  if (shown_.empty()) return;
  Span span;
  span.op = op;
  span.step = step;
  span.start = start;
  if (mxu > Picoseconds(0)) {
    span.end = start + mxu;
    ShowStep(Track::kMxu, 0, span);
  }
  if (vpu > Picoseconds(0)) {
    span.end = start + vpu;
    ShowStep(Track::kVpu, 0, span);
  }
}

void DeviceRecorder::TransferEnded(int32_t channel, int32_t op, int64_t step, Picoseconds start,
                                   Picoseconds end, Bytes bytes, Bytes hbm) {
  AddHbm(op, hbm);
  if (shown_.empty()) return;
  Span span;
  span.op = op;
  span.step = step;
  span.start = start;
  span.end = end;
  span.bytes = bytes;
  ShowStep(Track::kHbmDma, channel, span);
}

void DeviceRecorder::RepeatBegan(const events::RepeatingCore& core) { repeating_ = &core; }

void DeviceRecorder::RepeatEnded(int32_t op, Picoseconds until, Picoseconds mxu, Picoseconds vpu,
                                 Picoseconds compute, Bytes hbm) {
  repeating_ = nullptr;
  totals_.mxu_busy += mxu;
  totals_.vpu_busy += vpu;
  compute_.Extend(compute, until);
  AddHbm(op, hbm);
}

void DeviceRecorder::HostTransferEnded(int32_t op, bool to_host, Picoseconds start, Bytes bytes) {
  (to_host ? totals_.to_host : totals_.from_host) += bytes;
  AddHbm(op, bytes);
  if (shown_.empty()) return;
  Span span;
  span.op = op;
  span.start = start;
  span.end = Now();
  span.bytes = bytes;
  Show(Track::kHost, to_host ? 0 : 1, span);
}

void DeviceRecorder::LiveBytesChanged(isa::MemorySpace space, Bytes live, int32_t buffer,
                                      bool added) {
  if (!configs::IsRated(space)) return;
  const bool hbm = space == isa::MemorySpace::kHbm;
  Bytes& peak = totals_.peak_live.In(space);
  if (live > peak) {
    peak = live;
    if (hbm) totals_.peak_live_hbm_at = Now();
  }
  if (shown_.empty()) return;
  Recording& recording = shared_.recording;
  const auto memory = static_cast<int32_t>(configs::IndexOf(space));
  recording.Add(recording.PlaceOf(shown_, Counter::kLive, memory), Now(),
                static_cast<double>(live.value()));
  const isa::BufferInfo& info = shared_.program.info.buffers[buffer];
  if (!hbm || info.owner < 0) return;
  owned_.resize(shared_.program.info.owners.size());
  Bytes& owned = owned_[info.owner];
  owned = added ? owned + info.bytes : owned - info.bytes;
  recording.Add(recording.PlaceOf(shown_, Counter::kOwnedHbm, info.owner), Now(),
                static_cast<double>(owned.value()));
}

void DeviceRecorder::StreamFinished() { Finish(Now()); }

void DeviceRecorder::Visit(steady::StateVisitor& visitor) {
  compute_.Visit(visitor);
  for (std::vector<OpenLabel>& labels : open_) {
    visitor.Same(static_cast<int64_t>(labels.size()));
    for (OpenLabel& label : labels) {
      visitor.Named(isa::NameKind::kOp, label.op);
      visitor.Began(label.began);
    }
  }
  overlap_.Visit(visitor);
  visitor.Same(repeating_);
  for (Bytes& owned : owned_) visitor.Same(owned);
  // A device that has finished stays so; peaks stay as well, as what is live repeats.
  visitor.Began(finish_);
  visitor.Counter(totals_.mxu_busy);
  visitor.Counter(totals_.vpu_busy);
  visitor.Counter(totals_.to_host);
  visitor.Counter(totals_.from_host);
}

OpTotals& DeviceRecorder::ChangeOp(int32_t op) {
  OpTotals& totals = ops_[op];
  if (!shared_.marked || changed_[op] == shared_.marks) return totals;
  changed_[op] = shared_.marks;
  shared_.op_journal.push_back({this, op, totals});
  return totals;
}

Picoseconds& DeviceRecorder::ChangeCover(int32_t collective, int32_t by) {
  const size_t row = covers_.RowOf(collective, by);
  covers_changed_.resize(covers_.rows().size(), 0);
  Picoseconds& time = covers_.TimeOf(row);
  if (!shared_.marked || covers_changed_[row] == shared_.marks) return time;
  covers_changed_[row] = shared_.marks;
  shared_.cover_journal.push_back({this, row, time});
  return time;
}

void DeviceRecorder::SettleOverlap(Picoseconds now) {
  overlap_.Settle(
      now, ComputeUpTo(now), [this](int32_t op) -> OpTotals& { return ChangeOp(op); },
      [this](int32_t op, int32_t by, Picoseconds time) { ChangeCover(op, by) += time; });
}

}  // namespace tpusim::sim
