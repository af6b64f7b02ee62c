#include "sim/results/trace_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "configs/status_macros.h"

namespace tpusim::results {

using sim::Span;

TraceSource::TraceSource(const configs::Config& config, const isa::ProgramInfo& info,
                         const sim::Timeline& timeline)
    : config_(config), info_(info), timeline_(timeline), op_names_(info.ops.size(), -1) {}

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

TraceSource::Row& TraceSource::RowOf(Device& device, const Span& span) {
  const int32_t rank = RankOf(span);
  auto it = device.rows.find(rank);
  if (it == device.rows.end()) {
    const TrackKind kind = KindOf(span.track);
    it = device.rows.emplace(rank, Row{kind, RowName(kind, rank), Lanes(kind.nests), {}, {}}).first;
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
    CounterKind kind = KindOf(config_, s.counter, s.lane);
    CounterRow& row = devices_[s.device].counters[kind.rank];
    if (row.kind.name.empty()) row.kind = std::move(kind);
    row.samples.push_back(&s);
  }
  for (auto& [id, device] : devices_) {
    for (auto& [rank, row] : device.rows) SortRow(row.kind, row.spans);
    for (auto& [rank, counter] : device.counters) {
      std::stable_sort(counter.samples.begin(), counter.samples.end(),
                       [](const sim::CounterSample* a, const sim::CounterSample* b) {
                         return a->time < b->time;
                       });
    }
  }
}

absl::Status TraceSource::Open() {
  // A device that was recorded and did nothing is shown with an empty step.
  for (const int32_t device : timeline_.recorded_devices) devices_[device];
  reader_.emplace(timeline_.recording);
  while (reader_->Next(spans_, samples_)) {
    for (const Span& s : spans_) {
      RETURN_IF_ERROR(CheckSpan(s));
      RETURN_IF_ERROR(arrows_.Add(s));
    }
    size_ += static_cast<int64_t>(spans_.size() + samples_.size());
    SortOntoRows();
    for (auto& [id, device] : devices_) {
      for (auto& [rank, row] : device.rows) {
        for (const Span* s : row.spans) row.lanes.LaneOf(*s);
        if (rank != kTensorCore) continue;
        for (const Span* s : row.spans) {
          if (s->op >= 0) device.scopes[s->lane].Add(info_, *s);
        }
      }
    }
  }
  AddTracks();
  reader_.emplace(timeline_.recording);
  return absl::OkStatus();
}

void TraceSource::AddTracks() {
  for (auto& [id, device] : devices_) {
    const int32_t group = Group(id);
    device.steps_track = AddTrack("Steps", group, kSteps * kLanes);
    ++size_;
    if (!device.scopes.empty()) {
      // Of the main stream.
      ScopeNester& scopes = device.scopes.begin()->second;
      device.scope_slices = scopes.Finish(info_);
      for (ScopeNester::Slice& slice : device.scope_slices) {
        slice.name = Name(scopes.names()[slice.name]);
      }
      device.scopes.clear();
      size_ += static_cast<int64_t>(device.scope_slices.size());
    }
    if (!device.scope_slices.empty()) {
      device.scopes_track = AddTrack("Scopes", group, kScopes * kLanes);
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
  for (auto& [id, device] : devices_) {
    if (first_) {
      TraceSlice s;
      s.start = Picoseconds(0);
      s.end = timeline_.step_time;
      s.name = Name(id == timeline_.critical_device ? "step (critical device)" : "step");
      s.step = 0;
      model_.tracks[device.steps_track].slices.push_back(s);
    }
    size_t& next = device.next_scope;
    for (; next < device.scope_slices.size() && device.scope_slices[next].start < until_; ++next) {
      TraceSlice s;
      s.start = device.scope_slices[next].start;
      s.end = device.scope_slices[next].end;
      s.name = device.scope_slices[next].name;
      model_.tracks[device.scopes_track].slices.push_back(s);
    }
    for (auto& [rank, row] : device.rows) {
      for (const Span* s : row.spans) {
        const int32_t track = row.tracks[row.lanes.LaneOf(*s)];
        model_.tracks[track].slices.push_back(SliceOf(row, *s));
      }
    }
    for (auto& [rank, counter] : device.counters) {
      counter.filter.Filter(counter.samples, counter.kind.scale,
                            model_.tracks[counter.track].samples);
    }
  }
  first_ = false;
  return true;
}

TraceSlice TraceSource::SliceOf(const Row& row, const Span& span) {
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
  // Arrows with an end on a device that is not in the trace are left out.
  if (span.flow_out != 0 && arrows_.IsWhole(span.flow_out)) slice.flow_out = span.flow_out;
  if (span.flow_in != 0 && arrows_.IsWhole(span.flow_in)) {
    slice.flow_in = span.flow_in;
    slice.flow_in_at_end = arrows_.EndsAtEnd(span.flow_in);
  }
  return slice;
}

int32_t TraceSource::NameOf(const Row& row, int32_t op, bool arrival) {
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

// "chip 5 (1,1)", and "device 11" below it where chips have several.
int32_t TraceSource::Group(int32_t device) {
  const configs::Topology& topology = config_.topology;
  const int64_t chip = device / topology.devices_per_chip();
  auto it = chip_groups_.find(chip);
  if (it == chip_groups_.end()) {
    const configs::Coordinates at = topology.At(chip);
    // The viewer sorts groups as text: equally many digits keep chip 2 before chip 10.
    const size_t digits = fmt::format("{}", topology.chips() - 1).size();
    std::string name = fmt::format("chip {:0{}} ({},{}", chip, digits, at.at[0], at.at[1]);
    name += topology.shape()[2] > 1 ? fmt::format(",{})", at.at[2]) : ")";
    if (topology.slices() > 1) name += fmt::format(" of slice {}", topology.SliceOf(chip));
    it = chip_groups_.emplace(chip, AddTrack(name, -1, static_cast<int32_t>(chip))).first;
  }
  if (topology.devices_per_chip() == 1) return it->second;
  return AddTrack(fmt::format("device {}", device), it->second, device);
}

}  // namespace tpusim::results
