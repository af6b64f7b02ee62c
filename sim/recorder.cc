#include "sim/recorder.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "configs/mean_times.h"
#include "configs/status_macros.h"
#include "models/events/sim_time.h"
#include "models/timing/reduce_timing.h"

namespace tpusim::sim {

using events::Now;

Recorder::Recorder(const configs::Config& config, const isa::PodProgram& program,
                   const Classes& classes, const std::vector<int32_t>& record_devices,
                   int64_t steps, bool work)
    : classes_(classes),
      devices_per_chip_(config.topology.devices_per_chip()),
      recorded_(record_devices),
      finishes_(classes.devices.first.size(), Picoseconds(0)),
      devices_(static_cast<size_t>(program.devices())),
      shown_on_chip_(static_cast<size_t>(config.topology.chips()), -1),
      visible_(program.routes.size()),
      shared_{program, CollectiveKinds(program.info), work ? steps : 1, work} {
  std::sort(recorded_.begin(), recorded_.end());
  recorded_.erase(std::unique(recorded_.begin(), recorded_.end()), recorded_.end());
  std::vector<std::vector<int32_t>> shown(classes.devices.first.size());
  for (const int32_t device : recorded_) {
    shown[classes.devices.class_of[device]].push_back(device);
  }
  for (auto device = recorded_.rbegin(); device != recorded_.rend(); ++device) {
    shown_on_chip_[*device / devices_per_chip_] = *device;
  }
  for (size_t c = 0; c < shown.size(); ++c) {
    const int32_t device = classes.devices.first[c];
    devices_[device] = std::make_unique<DeviceRecorder>(shared_, finishes_[c], std::move(shown[c]));
  }
}

bool Recorder::IsRecorded(int32_t device) const {
  return std::binary_search(recorded_.begin(), recorded_.end(), device);
}

const std::vector<Recorder::Sender>& Recorder::VisibleSenders(int32_t route, int32_t device_class) {
  std::vector<std::vector<Sender>>& visible = visible_[route];
  if (visible.empty()) {
    visible.resize(classes_.devices.first.size());
    for (int32_t source = 0; source < shared_.program.devices(); ++source) {
      const int32_t its_route = classes_.RouteOfMember(source, route);
      if (its_route < 0) continue;
      const isa::RouteEnd& end = shared_.program.routes[its_route].from[source];
      if (end.peer < 0) continue;
      bool seen = IsRecorded(source) || IsRecorded(end.peer);
      for (const configs::Link& link : end.links) seen = seen || ShownOn(link.chip) >= 0;
      if (seen) visible[classes_.devices.class_of[source]].push_back({source, its_route});
    }
  }
  return visible[device_class];
}

void Recorder::RdmaEnded(const ici::RdmaRecord& record) {
  const isa::Rdma& rdma = *record.rdma;
  const int32_t device_class = classes_.devices.class_of[record.source];
  DeviceRecorder& source = device(record.source);
  source.Finish(record.end);
  if (rdma.from == isa::MemorySpace::kHbm) source.AddHbm(record.op, rdma.bytes);
  const int64_t hbm = rdma.to != isa::MemorySpace::kHbm ? 0
                      : rdma.reduce ? static_cast<int64_t>(timing::kReduceHbmWeight)
                                    : 1;
  for (const RouteLoad::Arrival& arrival : classes_.loads[rdma.route][device_class].arrivals) {
    Picoseconds& finish = finishes_[classes_.devices.class_of[arrival.receiver]];
    finish = std::max(finish, record.arrival);
  }
  // As much as the flow loads the memory of its receivers with (Router::Send).
  if (hbm > 0) {
    for (const RouteLoad::Receiver& to : classes_.loads[rdma.route][device_class].receivers) {
      const double bytes = static_cast<double>((rdma.bytes * hbm).value()) * to.share;
      device(to.receiver).AddHbm(record.op, Bytes(std::llround(bytes)));
    }
  }
  if (recorded_.empty() || !shared_.work) return;
  for (const Sender& sender : VisibleSenders(rdma.route, device_class)) ShowRdma(record, sender);
}

void Recorder::ShowRdma(const ici::RdmaRecord& record, const Sender& sender) {
  const int32_t source = sender.device;
  const isa::RouteEnd& route = shared_.program.routes[sender.route].from[source];
  if (route.links.empty() && !route.dcn) return;
  const bool sender_shown = IsRecorded(source), receiver_shown = IsRecorded(route.peer);
  const uint64_t arrow = sender_shown && receiver_shown ? ++arrows_ : 0;
  Span span;
  span.track = Track::kIci;
  span.op = record.op;
  span.start = record.start;
  span.end = record.end;
  span.bytes = record.rdma->bytes;
  if (route.dcn && sender_shown) {
    span.track = Track::kDcn;
    span.device = source;
    span.flow_out = arrow;
    shared_.recording.Add(span);
  }
  for (size_t hop = 0; hop < route.links.size(); ++hop) {
    const configs::Link& link = route.links[hop];
    span.device = hop == 0 && sender_shown ? source : ShownOn(link.chip);
    if (span.device < 0) continue;
    span.lane = static_cast<int32_t>(link.direction);
    span.flow_out = hop == 0 ? arrow : 0;
    shared_.recording.Add(span);
  }
  if (!receiver_shown) return;
  // The arrival: a moment on the track of the receiver's collectives.
  span.device = route.peer;
  span.track = TrackOf(record.stream.id.kind);
  if (span.track == Track::kTensorCore) span.track = Track::kCollective;
  span.lane = record.stream.id.kind == isa::StreamKind::kTensorCore ? 0 : record.stream.id.index;
  span.start = span.end = record.arrival;
  span.flow_out = 0;
  span.flow_in = arrow;
  shared_.recording.Add(span);
}

void Recorder::Settle(Picoseconds now) {
  for (const int32_t device : classes_.devices.first) devices_[device]->SettleOverlap(now);
}

void Recorder::Visit(steady::StateVisitor& visitor) {
  for (const int32_t device : classes_.devices.first) devices_[device]->Visit(visitor);
}

Recorder::Mark Recorder::SetMark() {
  shared_.marked = true;
  ++shared_.marks;
  FlushMerged();
  return {shared_.op_journal.size(), shared_.cover_journal.size(), shared_.recording.SetMark(),
          arrows_};
}

void Recorder::DropMarks() {
  shared_.marked = false;
  shared_.op_journal.clear();
  shared_.cover_journal.clear();
}

Recorder::Added Recorder::AddedSince(const Mark& mark) const {
  // The first entry since the mark has the value that there was then.
  Added added;
  std::set<std::pair<const DeviceRecorder*, int32_t>> done;  // looked up, never iterated over
  for (size_t i = mark.journal; i < shared_.op_journal.size(); ++i) {
    const SharedRecords::OpEntry& entry = shared_.op_journal[i];
    if (!done.emplace(entry.device, entry.op).second) continue;
    OpTotals difference = entry.device->ops_[entry.op];
    difference.Add(entry.totals, -1);
    added.ops.push_back({entry.device, entry.op, difference});
  }
  std::set<std::pair<const DeviceRecorder*, size_t>> covered;  // likewise
  for (size_t i = mark.covers; i < shared_.cover_journal.size(); ++i) {
    const SharedRecords::CoverEntry& entry = shared_.cover_journal[i];
    if (!covered.emplace(entry.device, entry.row).second) continue;
    added.covers.push_back(
        {entry.device, entry.row, entry.device->covers_.TimeOf(entry.row) - entry.time});
  }
  return added;
}

void Recorder::Repeat(const Mark& mark, Picoseconds period, int64_t times) {
  const Added added = AddedSince(mark);
  for (const SharedRecords::OpEntry& entry : added.ops) {
    entry.device->ops_[entry.op].Add(entry.totals, times);
  }
  for (const SharedRecords::CoverEntry& entry : added.covers) {
    entry.device->covers_.TimeOf(entry.row) += entry.time * times;
  }
  if (recorded_.empty()) return;
  FlushMerged();
  const uint64_t arrows = arrows_ - mark.arrows;
  shared_.recording.Repeat(mark.recording, period, times, arrows);
  arrows_ += arrows * static_cast<uint64_t>(times);
}

void Recorder::Repeat(const Mark& mark, int64_t times, const isa::Iterations& iterations,
                      int64_t per_period) {
  TPUSIM_CHECK(recorded_.empty(), "spans cannot be given other operations");
  const Added added = AddedSince(mark);
  for (int64_t n = 1; n <= times; ++n) {
    for (const SharedRecords::OpEntry& entry : added.ops) {
      entry.device->ops_[iterations.Later(entry.op, n * per_period)].Add(entry.totals, 1);
    }
    for (const SharedRecords::CoverEntry& entry : added.covers) {
      CoverTable& covers = entry.device->covers_;
      const Cover cover = covers.rows()[entry.row];
      const size_t row = covers.RowOf(iterations.Later(cover.collective, n * per_period),
                                      iterations.Later(cover.by, n * per_period));
      covers.TimeOf(row) += entry.time;
    }
  }
}

void Recorder::FlushMerged() {
  for (const int32_t representative : classes_.devices.first) {
    devices_[representative]->FlushSteps();
  }
  for (std::vector<Watch>& watches : watches_) {
    for (Watch& watch : watches) watch.rates.Flush(shared_.recording);
  }
}

void Recorder::WatchRate(flow::ResourceId resource, int32_t device, Counter counter, int32_t lane) {
  if (!shared_.work && counter == Counter::kLinkBandwidth) return;
  if (watches_.size() <= resource.value) watches_.resize(resource.value + 1);
  std::vector<Watch>& watches = watches_[resource.value];
  const auto same = std::find_if(watches.begin(), watches.end(), [&](const Watch& watch) {
    return watch.counter == counter && watch.lane == lane &&
           classes_.devices.class_of[watch.devices[0]] == classes_.devices.class_of[device];
  });
  if (same == watches.end()) {
    watches.push_back({{device}, counter, lane});
  } else {
    same->devices.push_back(device);
  }
}

void Recorder::ObserveRates(flow::Network& network) {
  for (std::vector<Watch>& watches : watches_) {
    for (Watch& watch : watches) {
      watch.rates =
          RateThinner(shared_.recording.PlaceOf(watch.devices, watch.counter, watch.lane));
    }
  }
  network.SetRateObserver([this](flow::ResourceId resource, Picoseconds time, double rate) {
    if (resource.value >= watches_.size()) return;
    for (Watch& watch : watches_[resource.value]) {
      const int64_t run = device(watch.devices[0]).run_;
      watch.rates.Add(shared_.recording, 2 * shared_.steps, run, time, rate);
    }
  });
}

std::vector<MeanOpTotals> Recorder::MeanOps() const {
  // As floating point: picoseconds of many devices are more than 64 bits hold.
  std::vector<double> counts(shared_.program.info.ops.size(), 0), times(counts);
  double devices = 0;
  for (const int32_t representative : classes_.devices.first) {
    const auto alike = static_cast<double>(classes_.devices.Multiplicity(representative));
    devices += alike;
    const std::vector<OpTotals>& ops = devices_[representative]->ops_;
    for (size_t op = 0; op < ops.size(); ++op) {
      counts[op] += alike * static_cast<double>(ops[op].count);
      times[op] += alike * static_cast<double>(ops[op].main.value());
    }
  }
  std::vector<MeanOpTotals> means(counts.size());
  MeanTimes mean(devices);
  for (size_t op = 0; op < means.size(); ++op) {
    means[op] = {counts[op] / devices, mean.Next(times[op])};
  }
  return means;
}

Timeline Recorder::Finish() {
  Timeline timeline;
  timeline.recorded_devices = recorded_;
  timeline.recorded_steps = shared_.steps;
  timeline.class_of = classes_.devices.class_of;
  for (const int32_t representative : classes_.devices.first) {
    DeviceRecorder& recorder = *devices_[representative];
    recorder.totals_.finish = recorder.finish_;
    recorder.totals_.compute_busy = recorder.compute_.Total();
    recorder.totals_.collective = recorder.overlap_.in_flight();
    recorder.totals_.exposed = recorder.overlap_.exposed();
    if (recorder.totals_.finish > timeline.step_time) {
      timeline.step_time = recorder.totals_.finish;
      timeline.critical_device = representative;
    }
  }
  timeline.devices.reserve(static_cast<size_t>(shared_.program.devices()));
  for (int32_t id = 0; id < shared_.program.devices(); ++id) {
    timeline.devices.push_back(device(id).totals_);
  }
  if (!devices_.empty()) {
    timeline.ops = devices_[timeline.critical_device]->ops_;
    timeline.mean_ops = MeanOps();
    timeline.covers = devices_[timeline.critical_device]->covers_.rows();
    timeline.kinds = devices_[timeline.critical_device]->overlap_.OfKinds();
  }
  FlushMerged();
  timeline.recording = std::move(shared_.recording);
  return timeline;
}

}  // namespace tpusim::sim
