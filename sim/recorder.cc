#include "sim/recorder.h"

#include <algorithm>
#include <utility>

#include "configs/status_macros.h"
#include "models/chip/sim_time.h"
#include "models/timing/reduce_timing.h"

namespace tpusim::sim {

using chip::Now;

void BusyUnion::Add(Picoseconds start, Picoseconds end) {
  if (end <= until_) return;
  measure_ += end - std::max(start, until_);
  until_ = end;
}

Picoseconds BusyUnion::UpTo(Picoseconds now) const {
  // Beyond `now` the union is one piece: everything in it has begun already.
  return until_ > now ? measure_ - (until_ - now) : measure_;
}

DeviceRecorder::DeviceRecorder(Recorder& recorder, int32_t device, bool recorded)
    : recorder_(recorder),
      device_(device),
      recorded_(recorded),
      ops_(recorder.program_.info.ops.size()) {}

void DeviceRecorder::LabelBegan(const chip::StreamRef& stream, int32_t op) {
  const Picoseconds now = Now();
  const Picoseconds compute = compute_.UpTo(now);
  if (static_cast<int32_t>(open_.size()) <= stream.ordinal) open_.resize(stream.ordinal + 1);
  open_[stream.ordinal].push_back({op, now, compute});
  const bool collective = recorder_.program_.info.ops[op].collective >= 0 &&
                          stream.id.kind != isa::StreamKind::kTensorCore;
  if (collective && in_flight_++ == 0) {
    in_flight_since_ = now;
    in_flight_compute_ = compute;
  }
}

void DeviceRecorder::LabelEnded(const chip::StreamRef& stream, int32_t op) {
  const OpenLabel label = open_[stream.ordinal].back();
  open_[stream.ordinal].pop_back();
  TPUSIM_CHECK(label.op == op, "labels do not nest");
  const Picoseconds now = Now();
  const Picoseconds compute = compute_.UpTo(now);
  const bool main = stream.id.kind == isa::StreamKind::kTensorCore;
  const bool collective = recorder_.program_.info.ops[op].collective >= 0;
  // A collective is counted where it is in flight, not where it is waited for.
  if (collective == !main) {
    OpTotals& totals = ops_[op];
    ++totals.count;
    totals.total += now - label.began;
    if (collective) totals.exposed += now - label.began - (compute - label.compute);
  }
  if (collective && !main && --in_flight_ == 0) {
    totals_.collective += now - in_flight_since_;
    totals_.exposed += now - in_flight_since_ - (compute - in_flight_compute_);
  }
  if (!recorded_) return;
  Span span;
  span.device = device_;
  span.track = main                                       ? Track::kTensorCore
               : stream.id.kind == isa::StreamKind::kHost ? Track::kHost
                                                          : Track::kCollective;
  span.lane = stream.id.index;
  span.op = op;
  span.start = label.began;
  span.end = now;
  recorder_.spans_.push_back(span);
}

void DeviceRecorder::BlockBegan(int32_t op, int64_t step, Picoseconds mxu, Picoseconds vpu,
                                Picoseconds) {
  const Picoseconds now = Now();
  totals_.mxu_busy += mxu;
  totals_.vpu_busy += vpu;
  compute_.Add(now, now + std::max(mxu, vpu));
  if (!recorded_) return;
  Span span;
  span.device = device_;
  span.op = op;
  span.step = step;
  span.start = now;
  if (mxu > Picoseconds(0)) {
    span.track = Track::kMxu;
    span.end = now + mxu;
    recorder_.spans_.push_back(span);
  }
  if (vpu > Picoseconds(0)) {
    span.track = Track::kVpu;
    span.end = now + vpu;
    recorder_.spans_.push_back(span);
  }
}

void DeviceRecorder::TransferEnded(int32_t channel, int32_t op, int64_t step, Picoseconds start,
                                   Bytes bytes, Bytes hbm) {
  AddHbm(op, hbm);
  if (!recorded_) return;
  Span span;
  span.device = device_;
  span.track = Track::kHbmDma;
  span.lane = channel;
  span.op = op;
  span.step = step;
  span.start = start;
  span.end = Now();
  span.bytes = bytes;
  recorder_.spans_.push_back(span);
}

void DeviceRecorder::HostTransferEnded(int32_t op, bool to_host, Picoseconds start, Bytes bytes) {
  if (!recorded_) return;
  Span span;
  span.device = device_;
  span.track = Track::kHost;
  span.lane = to_host ? 0 : 1;
  span.op = op;
  span.start = start;
  span.end = Now();
  span.bytes = bytes;
  recorder_.spans_.push_back(span);
}

void DeviceRecorder::LiveHbmChanged(Bytes live) {
  totals_.peak_live_hbm = std::max(totals_.peak_live_hbm, live);
  if (!recorded_) return;
  recorder_.samples_.push_back(
      {device_, Counter::kLiveHbm, 0, Now(), static_cast<double>(live.value())});
}

void DeviceRecorder::StreamFinished() { totals_.finish = std::max(totals_.finish, Now()); }

Recorder::Recorder(const configs::Config& config, const isa::PodProgram& program,
                   const std::vector<int32_t>& record_devices)
    : program_(program),
      devices_per_chip_(config.topology.devices_per_chip()),
      recorded_(record_devices),
      shown_on_chip_(static_cast<size_t>(config.topology.chips()), -1) {
  std::sort(recorded_.begin(), recorded_.end());
  recorded_.erase(std::unique(recorded_.begin(), recorded_.end()), recorded_.end());
  for (auto device = recorded_.rbegin(); device != recorded_.rend(); ++device) {
    shown_on_chip_[*device / devices_per_chip_] = *device;
  }
  for (int32_t device = 0; device < program.devices(); ++device) {
    const bool recorded = std::binary_search(recorded_.begin(), recorded_.end(), device);
    devices_.push_back(std::make_unique<DeviceRecorder>(*this, device, recorded));
  }
}

void Recorder::RdmaEnded(const ici::RdmaRecord& record) {
  DeviceRecorder& source = device(record.source);
  DeviceRecorder& destination = device(record.destination);
  source.totals_.finish = std::max(source.totals_.finish, record.end);
  destination.totals_.finish = std::max(destination.totals_.finish, record.arrival);
  const isa::Rdma& rdma = *record.rdma;
  if (rdma.from == isa::MemorySpace::kHbm) source.AddHbm(record.op, rdma.bytes);
  if (rdma.to == isa::MemorySpace::kHbm) {
    constexpr auto kReduce = static_cast<int64_t>(timing::kReduceHbmWeight);
    destination.AddHbm(record.op, rdma.bytes * (rdma.reduce ? kReduce : 1));
  }
  if (recorded_.empty()) return;

  const uint64_t arrow =
      source.recorded() && destination.recorded() && !record.route->links.empty() ? ++arrows_ : 0;
  Span span;
  span.track = Track::kIci;
  span.op = record.op;
  span.start = record.start;
  span.end = record.end;
  span.bytes = record.rdma->bytes;
  for (size_t hop = 0; hop < record.route->links.size(); ++hop) {
    const configs::Link& link = record.route->links[hop];
    span.device = hop == 0 && source.recorded() ? record.source : ShownOn(link.chip);
    if (span.device < 0) continue;
    span.lane = static_cast<int32_t>(link.direction);
    span.flow_out = hop == 0 ? arrow : 0;
    spans_.push_back(span);
  }
  if (!destination.recorded() || record.route->links.empty()) return;
  // The arrival: a moment on the track of the receiver's collectives.
  span.device = record.destination;
  span.track = Track::kCollective;
  span.lane = record.stream.id.kind == isa::StreamKind::kTensorCore ? 0 : record.stream.id.index;
  span.start = span.end = record.arrival;
  span.flow_out = 0;
  span.flow_in = arrow;
  spans_.push_back(span);
}

void Recorder::WatchRate(flow::ResourceId resource, int32_t device, Counter counter, int32_t lane) {
  if (watches_.size() <= resource.value) watches_.resize(resource.value + 1);
  watches_[resource.value] = {device, counter, lane};
}

void Recorder::ObserveRates(flow::Network& network) {
  network.SetRateObserver([this](flow::ResourceId resource, Picoseconds time, double rate) {
    if (resource.value >= watches_.size()) return;
    const Watch& watch = watches_[resource.value];
    if (watch.device < 0) return;
    samples_.push_back({watch.device, watch.counter, watch.lane, time, rate});
  });
}

Timeline Recorder::Finish() {
  Timeline timeline;
  timeline.recorded_devices = recorded_;
  for (auto& recorder : devices_) {
    recorder->totals_.compute_busy = recorder->compute_.Total();
    if (recorder->totals_.finish > timeline.step_time) {
      timeline.step_time = recorder->totals_.finish;
      timeline.critical_device = recorder->device_;
    }
    timeline.devices.push_back(recorder->totals_);
  }
  if (!devices_.empty()) timeline.ops = devices_[timeline.critical_device]->ops_;
  timeline.spans = std::move(spans_);
  std::stable_sort(timeline.spans.begin(), timeline.spans.end(),
                   [](const Span& a, const Span& b) { return a.end < b.end; });
  timeline.counters = std::move(samples_);
  return timeline;
}

}  // namespace tpusim::sim
