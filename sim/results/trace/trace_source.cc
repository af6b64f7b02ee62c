#include "sim/results/trace/trace_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "configs/status_macros.h"

namespace tpusim::results {

using sim::Span;

std::vector<std::string> JaxNames(const configs::Config& config) {
  const std::vector<int64_t> numbers = configs::JaxDeviceNumbers(config);
  const int64_t cores = config.topology.devices_per_chip();
  std::vector<std::string> names;
  for (size_t device = 0; device < numbers.size(); ++device) {
    const int64_t chip = static_cast<int64_t>(device) / cores;
    const configs::Coordinates at = config.topology.At(chip);
    names.push_back(fmt::format("TPU_{}(process={},({},{},{},{}))", numbers[device],
                                configs::HostOf(config, chip), at.at[0], at.at[1], at.at[2],
                                static_cast<int64_t>(device) % cores));
  }
  return names;
}

TraceSource::TraceSource(const configs::Config& config, const isa::ProgramInfo& info,
                         const sim::Timeline& timeline)
    : config_(config),
      info_(info),
      timeline_(timeline),
      flights_(info),
      op_names_(info.ops.size(), -1),
      device_names_(JaxNames(config)),
      device_numbers_(configs::JaxDeviceNumbers(config)) {}

absl::Status TraceSource::CheckSpan(const Span& s) const {
  if (s.end < s.start || s.start < Picoseconds(0)) {
    return absl::InternalError(fmt::format("span on device {} from {} to {} ps", s.device,
                                           s.start.value(), s.end.value()));
  }
  if (s.op >= static_cast<int64_t>(info_.ops.size())) {
    return absl::InternalError(fmt::format("span of operation {} of {}", s.op, info_.ops.size()));
  }
  if (s.track == sim::Track::kIci && (s.lane < 0 || s.lane >= configs::kDirections)) {
    return absl::InternalError(fmt::format("transfer leaving in direction {}", s.lane));
  }
  return absl::OkStatus();
}

TraceSource::SpanRow& TraceSource::RowOf(RecordedDevice& device, const Span& span) {
  const int32_t rank = RankOf(span);
  auto it = device.rows.find(rank);
  if (it == device.rows.end()) {
    const TrackKind kind = KindOf(span.track);
    it = device.rows.emplace(rank, SpanRow(kind, RowName(kind, rank))).first;
  }
  return it->second;
}

void TraceSource::SortOntoRows() {
  for (auto& [id, device] : devices_) {
    for (auto& [rank, row] : device.rows) row.spans.clear();
    for (auto& [rank, counter] : device.counters) counter.samples.clear();
  }
  for (const Span& s : spans_) RowOf(devices_[s.device], s).spans.push_back(&s);
  for (const sim::CounterSample& s : samples_) {
    CounterKind kind = KindOf(config_, info_, s.counter, s.lane);
    CounterRow& row = devices_[s.device].counters[kind.rank];
    if (row.kind.name.empty()) row.kind = std::move(kind);
    row.samples.push_back(&s);
  }
  for (auto& [id, device] : devices_) {
    for (auto& [rank, row] : device.rows) SortRow(row.spans);
    for (auto& [rank, counter] : device.counters) {
      std::ranges::stable_sort(counter.samples, {}, &sim::CounterSample::time);
    }
  }
}

absl::Status TraceSource::Open() {
  // A device that was recorded and did nothing is shown with an empty step.
  for (const int32_t device : timeline_.recorded_devices) devices_[device];
  OpenPod();
  if (timeline_.recorded_steps > 0) {
    for (auto& [id, rings] : FindRings(info_, timeline_)) {
      devices_[id].rings = std::move(rings);
    }
  }
  reader_.emplace(timeline_.recording);
  while (reader_->Next(spans_, samples_)) {
    for (const Span& s : spans_) {
      RETURN_IF_ERROR(CheckSpan(s));
      RETURN_IF_ERROR(arrows_.Add(s));
    }
    slice_count_ += static_cast<int64_t>(spans_.size());
    sample_count_ += static_cast<int64_t>(samples_.size());
    SortOntoRows();
    for (auto& [id, device] : devices_) {
      for (auto& [rank, row] : device.rows) {
        for (const Span* s : row.spans) {
          const int32_t lane = row.lanes.LaneOf(*s);
          flights_.Add(*s);
          if (const Ring* ring = device.rings.Of(*s)) {
            row.in_rings.Add(*ring, RingLimit(), lane, *s);
            --slice_count_;
          }
        }
        if (rank != kTensorCore) continue;
        const auto pod = pod_.find(id);
        for (const Span* s : row.spans) {
          if (s->op >= 0) device.scopes[s->lane].Add(info_, *s);
          if (pod != pod_.end()) pod->second.summary.Add(*s);
        }
      }
      for (auto& [rank, counter] : device.counters) {
        for (const sim::CounterSample* s : counter.samples) {
          const Ring* ring = device.rings.Of(*s);
          counter.in_rings.Add(ring, RingLimit(), *s);
          if (ring != nullptr) --sample_count_;
        }
      }
    }
  }
  MergeRings();
  AddTracks();
  reader_.emplace(timeline_.recording);
  return absl::OkStatus();
}

void TraceSource::MergeRings() {
  for (auto& [id, device] : devices_) {
    for (auto& [rank, row] : device.rows) {
      row.merged = row.in_rings.Finish();
      slice_count_ += static_cast<int64_t>(row.merged.size());
    }
    for (auto& [rank, counter] : device.counters) {
      counter.thinned = counter.in_rings.Finish();
      sample_count_ += static_cast<int64_t>(counter.thinned.size());
    }
  }
}

// Adds the spans that replace those of rings, by start among the others.
void TraceSource::AddSlices(SpanRow& row, const RecordedDevice& device) {
  const auto add_merged = [&](Picoseconds until) {
    for (; row.next_merged < row.merged.size(); ++row.next_merged) {
      const auto& [lane, span] = row.merged[row.next_merged];
      if (span.start >= until) break;
      model_.tracks[row.tracks[lane]].slices.push_back(SliceOf(row, span));
    }
  };
  for (const Span* s : row.spans) {
    const int32_t track = row.tracks[row.lanes.LaneOf(*s)];
    if (device.rings.Of(*s) != nullptr) continue;
    add_merged(s->start);
    model_.tracks[track].slices.push_back(SliceOf(row, *s));
  }
  add_merged(until_);
}

void TraceSource::AddSamples(CounterRow& row, const RecordedDevice& device) {
  std::vector<const sim::CounterSample*> shown;
  // Up to `time`: where a ring ends, what comes then holds after it.
  const auto add_thinned = [&](Picoseconds time) {
    for (; row.next_thinned < row.thinned.size(); ++row.next_thinned) {
      if (row.thinned[row.next_thinned].time > time) break;
      shown.push_back(&row.thinned[row.next_thinned]);
    }
  };
  for (const sim::CounterSample* s : row.samples) {
    if (device.rings.Of(*s) != nullptr) continue;
    add_thinned(s->time);
    shown.push_back(s);
  }
  add_thinned(until_ - Picoseconds(1));
  row.filter.Filter(shown, row.kind.scale, model_.tracks[row.track].samples);
}

void TraceSource::OpenPod() {
  // Gaps below a thousandth of the step are not seen.
  constexpr int64_t kGaps = 1000;
  if (devices_.size() <= kFewDevices || timeline_.class_of.empty()) return;
  std::map<int32_t, int32_t> first;  // by class
  for (const auto& [id, device] : devices_) {
    const int32_t representative = first.emplace(timeline_.class_of[id], id).first->second;
    const PodTrack empty = {PodSummary(info_, timeline_.step_time / kGaps)};
    ++pod_.emplace(representative, empty).first->second.devices;
  }
}

void TraceSource::AddPodTracks() {
  if (pod_.empty()) return;
  slice_group_ = AddTrack(config_.name, -1, 0);
  // Before all devices.
  const int32_t group = AddTrack("Pod", slice_group_, -1);
  int32_t rank = 0;
  for (auto& [id, pod] : pod_) {
    const std::string name =
        pod.devices == 1 ? device_names_[id]
                         : fmt::format("{} and {} alike", device_names_[id], pod.devices - 1);
    pod.shown.track = AddTrack(name, group, rank++);
    for (const PodSummary::PodSlice& slice : pod.summary.slices()) {
      pod.shown.slices.push_back({slice.start, slice.end, Name(slice.name)});
    }
    slice_count_ += static_cast<int64_t>(pod.shown.slices.size());
  }
}

void TraceSource::AddKnown(EarlySlices& known) {
  for (; known.next < known.slices.size(); ++known.next) {
    const auto& [start, end, name] = known.slices[known.next];
    if (start >= until_) return;
    model_.tracks[known.track].slices.push_back({.start = start, .end = end, .name = name});
  }
}

void TraceSource::AddTracks() {
  AddPodTracks();
  for (auto& [id, device] : devices_) {
    const int32_t group = Group(id);
    device.steps_track = AddTrack("Steps", group, kSteps * kLanes);
    device.modules_track = AddTrack("XLA Modules", group, kModules * kLanes);
    slice_count_ += 2;
    if (!device.scopes.empty()) {
      // Of the main stream.
      ScopeNester& scopes = device.scopes.begin()->second;
      EarlySlices& shown = device.scope_slices;
      shown.slices = scopes.Finish();
      for (ScopeNester::NestedSlice& slice : shown.slices) {
        slice.name = Name(scopes.names()[slice.name]);
      }
      device.scopes.clear();
      slice_count_ += static_cast<int64_t>(shown.slices.size());
      if (!shown.slices.empty()) shown.track = AddTrack("Scopes", group, kScopes * kLanes);
    }
    for (auto& [rank, row] : device.rows) {
      for (int32_t lane = 0; lane < row.lanes.size(); ++lane) {
        const std::string name = lane == 0 ? row.name : fmt::format("{} {}", row.name, lane + 1);
        row.tracks.push_back(AddTrack(name, group, rank * kLanes + lane));
      }
      row.lanes = Lanes(row.kind.nests);
    }
    for (auto& [rank, counter] : device.counters) {
      counter.track = AddTrack(counter.kind.name, group, rank * kLanes);
      model_.tracks[counter.track].is_counter = true;
      model_.tracks[counter.track].unit = counter.kind.unit;
    }
  }
}

bool TraceSource::Next() {
  if (last_) return false;
  for (TraceTrack& t : model_.tracks) {
    t.slices.clear();
    t.samples.clear();
  }
  // Without any spans there is one window for the steps.
  if (reader_->Next(spans_, samples_)) {
    until_ = reader_->until();
  } else {
    until_ = kEndOfTime;
    spans_.clear();
    samples_.clear();
  }
  last_ = until_ == kEndOfTime;
  SortOntoRows();
  for (auto& [id, pod] : pod_) AddKnown(pod.shown);
  for (auto& [id, device] : devices_) {
    if (first_) AddStep(device, id == timeline_.critical_device);
    AddKnown(device.scope_slices);
    for (auto& [rank, row] : device.rows) AddSlices(row, device);
    for (auto& [rank, counter] : device.counters) AddSamples(counter, device);
  }
  first_ = false;
  return true;
}

void TraceSource::AddStep(RecordedDevice& device, bool critical) {
  TraceSlice s;
  s.start = Picoseconds(0);
  s.end = timeline_.step_time;
  s.name = Name(critical ? "step 0 (critical device)" : "step 0");
  s.step = 0;
  model_.tracks[device.steps_track].slices.push_back(s);
  s.name = Name(info_.module_name);
  s.step = -1;
  model_.tracks[device.modules_track].slices.push_back(s);
}

TraceSlice TraceSource::SliceOf(const SpanRow& row, const Span& span) {
  TraceSlice slice;
  slice.start = span.start;
  slice.end = span.end;
  // Operations are labels and move no bytes themselves; what does move some
  // on their track is a transfer that arrived.
  const bool arrival = row.kind.nests && span.bytes.value() != 0;
  slice.name = NameOf(row, span.op, arrival);
  slice.detail = arrival ? SliceDetail::kWork : row.kind.detail;
  slice.op = span.op;
  slice.step = span.step;
  slice.bytes = span.bytes;
  slice.merged = span.merged;
  slice.busy = span.busy;
  arrows_.Draw(span, slice);
  flights_.Draw(span, slice);
  return slice;
}

int32_t TraceSource::NameOf(const SpanRow& row, int32_t op, bool arrival) {
  const std::string& name = op >= 0 ? info_.ops[op].name : row.name;
  if (arrival) return Name("arrival of " + name);
  if (op < 0) return Name(name);
  if (op_names_[op] < 0) op_names_[op] = Name(name);
  return op_names_[op];
}

int32_t TraceSource::Name(const std::string& name) {
  const auto [it, is_new] = name_ids_.emplace(name, static_cast<int32_t>(model_.names.size()));
  if (is_new) model_.names.push_back(name);
  return it->second;
}

int32_t TraceSource::AddTrack(std::string name, int32_t parent, int32_t rank) {
  TraceTrack t;
  t.name = std::move(name);
  t.parent = parent;
  t.rank = rank;
  model_.tracks.push_back(std::move(t));
  return static_cast<int32_t>(model_.tracks.size()) - 1;
}

// Several devices are in a group of the slice, which keeps device 2 before device 10.
int32_t TraceSource::Group(int32_t device) {
  if (devices_.size() > 1 && slice_group_ < 0) slice_group_ = AddTrack(config_.name, -1, 0);
  const auto number = static_cast<int32_t>(device_numbers_[device]);
  return AddTrack(device_names_[device], slice_group_, number);
}

}  // namespace tpusim::results
