#include "sim/results/perfetto.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "configs/status_macros.h"
#include "sim/results/atomic_file.h"
#include "sim/results/perfetto_trace.pb.h"

namespace tpusim::results {
namespace {

namespace pb = ::tpusim::perfetto;

// One writer, so one sequence. What is interned lives until the sequence says
// that its state was cleared, which only its first packet does.
constexpr uint32_t kSequence = 1;

// A point in the file. Perfetto keeps the file's order among equal
// nanoseconds, and an arrow's end may not come before its start: the exact
// time decides, then slices where arrows end come last. Within a track the
// order of `sequence` is never changed by it, since all keys are monotone.
struct Event {
  enum Kind : uint8_t { kBegin, kEnd, kSample };
  Picoseconds time;
  bool after_arrows = false;
  int32_t track = 0;
  int32_t index = 0;  // of the slice or sample
  Kind kind = kBegin;

  bool operator<(const Event& o) const {
    return std::tie(time, after_arrows) < std::tie(o.time, o.after_arrows);
  }
};

std::vector<Event> EventsOf(const TraceTrack& track, int32_t index) {
  std::vector<Event> events;
  events.reserve(2 * track.slices.size() + track.samples.size());
  const auto add = [&](Picoseconds time, bool sink, int32_t i, Event::Kind kind) {
    const bool same_time = !events.empty() && events.back().time == time;
    const bool after = sink || (same_time && events.back().after_arrows);
    events.push_back({time, after, index, i, kind});
  };
  std::vector<int32_t> open;
  const auto close = [&] {
    const TraceSlice& s = track.slices[open.back()];
    add(s.end, s.flow_in != 0 && s.flow_in_at_end, open.back(), Event::kEnd);
    open.pop_back();
  };
  for (int32_t i = 0; i < static_cast<int32_t>(track.slices.size()); ++i) {
    const TraceSlice& s = track.slices[i];
    while (!open.empty() && track.slices[open.back()].end <= s.start) close();
    add(s.start, s.flow_in != 0 && !s.flow_in_at_end, i, Event::kBegin);
    open.push_back(i);
  }
  while (!open.empty()) close();
  for (int32_t i = 0; i < static_cast<int32_t>(track.samples.size()); ++i) {
    add(track.samples[i].time, false, i, Event::kSample);
  }
  return events;
}

class Encoder {
 public:
  Encoder(const TraceModel& model, const isa::ProgramInfo& info) : model_(model), info_(info) {}

  std::string Encode() {
    std::vector<bool> is_parent(model_.tracks.size(), false);
    for (const TraceTrack& t : model_.tracks) {
      if (t.parent >= 0) is_parent[t.parent] = true;
    }
    for (size_t i = 0; i < model_.tracks.size(); ++i) WriteTrack(i, is_parent[i]);

    std::vector<Event> events;
    for (size_t i = 0; i < model_.tracks.size(); ++i) {
      const std::vector<Event> of_track = EventsOf(model_.tracks[i], static_cast<int32_t>(i));
      events.insert(events.end(), of_track.begin(), of_track.end());
    }
    std::stable_sort(events.begin(), events.end());
    for (const Event& e : events) WriteEvent(e);
    return std::move(bytes_);
  }

 private:
  // Any number but zero, which is Perfetto's default track.
  static uint64_t Uuid(int32_t track) { return static_cast<uint64_t>(track) + 1; }

  void WriteTrack(size_t index, bool is_parent) {
    const TraceTrack& t = model_.tracks[index];
    pb::TrackDescriptor& d = *packet_.mutable_track_descriptor();
    d.set_uuid(Uuid(static_cast<int32_t>(index)));
    d.set_name(t.name);
    if (t.parent >= 0) d.set_parent_uuid(Uuid(t.parent));
    d.set_sibling_order_rank(t.rank);
    if (is_parent) d.set_child_ordering(pb::TrackDescriptor::EXPLICIT);
    d.set_sibling_merge_behavior(pb::TrackDescriptor::SIBLING_MERGE_BEHAVIOR_NONE);
    if (t.is_counter) {
      if (t.unit == "B") {
        d.mutable_counter()->set_unit(pb::CounterDescriptor::UNIT_SIZE_BYTES);
      } else {
        d.mutable_counter()->set_unit_name(t.unit);
      }
    }
    Flush();
  }

  void WriteEvent(const Event& e) {
    packet_.set_timestamp(static_cast<uint64_t>(TraceNanoseconds(e.time)));
    pb::TrackEvent& event = *packet_.mutable_track_event();
    event.set_track_uuid(Uuid(e.track));
    const TraceTrack& track = model_.tracks[e.track];
    if (e.kind == Event::kSample) {
      event.set_type(pb::TrackEvent::TYPE_COUNTER);
      event.set_double_counter_value(track.samples[e.index].value);
      Flush();
      return;
    }
    const TraceSlice& s = track.slices[e.index];
    const bool begin = e.kind == Event::kBegin;
    event.set_type(begin ? pb::TrackEvent::TYPE_SLICE_BEGIN : pb::TrackEvent::TYPE_SLICE_END);
    if (begin) {
      event.set_name_iid(EventName(model_.names[s.name]));
      if (s.flow_out != 0) event.add_flow_ids(s.flow_out);
      AddArguments(s, event);
    }
    if (s.flow_in != 0 && begin != s.flow_in_at_end) event.add_terminating_flow_ids(s.flow_in);
    Flush();
  }

  void AddArguments(const TraceSlice& s, pb::TrackEvent& event) {
    if (s.op >= 0 && s.detail != SliceDetail::kNone) {
      const isa::OpInfo& op = info_.ops[s.op];
      Text(event, "hlo", op.name);
      if (s.detail == SliceDetail::kOperation) {
        if (!op.category.empty()) event.add_category_iids(Category(op.category));
        Text(event, "shape", op.shape);
        if (op.flops.value() != 0) Integer(event, "flops", op.flops.value());
        if (op.hbm_bytes.value() != 0) Integer(event, "hbm_bytes", op.hbm_bytes.value());
        Text(event, "op_name", op.scope);
        if (op.collective >= 0) AddCollective(info_.collectives[op.collective], event);
      }
      Text(event, "source", op.source);
    }
    if (s.bytes.value() != 0) Integer(event, "bytes", s.bytes.value());
    if (s.step >= 0) Integer(event, "step", s.step);
  }

  void AddCollective(const isa::CollectiveInfo& c, pb::TrackEvent& event) {
    Text(event, "kind", c.kind);
    Text(event, "algorithm", c.algorithm);
    Text(event, "axes", c.axes);
    Integer(event, "group_size", c.group_size);
    Integer(event, "collective_bytes", c.bytes.value());
    Real(event, "expected_ns", ToNanoseconds(c.expected));
    Real(event, "bound_ns", ToNanoseconds(c.bound));
  }

  pb::DebugAnnotation& Argument(pb::TrackEvent& event, const char* name) {
    pb::DebugAnnotation& a = *event.add_debug_annotations();
    const auto [it, is_new] = argument_names_.emplace(name, argument_names_.size() + 1);
    if (is_new) {
      auto* entry = packet_.mutable_interned_data()->add_debug_annotation_names();
      entry->set_iid(it->second);
      entry->set_name(name);
    }
    a.set_name_iid(it->second);
    return a;
  }
  void Integer(pb::TrackEvent& event, const char* name, int64_t value) {
    Argument(event, name).set_int_value(value);
  }
  void Real(pb::TrackEvent& event, const char* name, double value) {
    Argument(event, name).set_double_value(value);
  }
  void Text(pb::TrackEvent& event, const char* name, const std::string& value) {
    if (value.empty()) return;
    const auto [it, is_new] = strings_.emplace(value, strings_.size() + 1);
    if (is_new) {
      auto* entry = packet_.mutable_interned_data()->add_debug_annotation_string_values();
      entry->set_iid(it->second);
      entry->set_str(value);
    }
    Argument(event, name).set_string_value_iid(it->second);
  }
  uint64_t EventName(const std::string& name) {
    const auto [it, is_new] = event_names_.emplace(name, event_names_.size() + 1);
    if (is_new) {
      auto* entry = packet_.mutable_interned_data()->add_event_names();
      entry->set_iid(it->second);
      entry->set_name(name);
    }
    return it->second;
  }
  uint64_t Category(const std::string& name) {
    const auto [it, is_new] = categories_.emplace(name, categories_.size() + 1);
    if (is_new) {
      auto* entry = packet_.mutable_interned_data()->add_event_categories();
      entry->set_iid(it->second);
      entry->set_name(name);
    }
    return it->second;
  }

  // Appends the packet as one element of Trace.packet, so that the whole trace
  // never exists as messages.
  void Flush() {
    packet_.set_trusted_packet_sequence_id(kSequence);
    uint32_t flags = pb::TracePacket::SEQ_NEEDS_INCREMENTAL_STATE;
    if (bytes_.empty()) flags |= pb::TracePacket::SEQ_INCREMENTAL_STATE_CLEARED;
    packet_.set_sequence_flags(flags);
    constexpr char kPacketTag = 1 << 3 | 2;  // field 1, a message
    bytes_ += kPacketTag;
    size_t size = packet_.ByteSizeLong();
    for (; size >= 0x80; size >>= 7) bytes_ += static_cast<char>(0x80 | (size & 0x7f));
    bytes_ += static_cast<char>(size);
    packet_.AppendToString(&bytes_);
    packet_.Clear();
  }

  const TraceModel& model_;
  const isa::ProgramInfo& info_;
  std::string bytes_;
  pb::TracePacket packet_;
  std::map<std::string, uint64_t> event_names_, categories_, argument_names_, strings_;
};

}  // namespace

std::string EncodePerfetto(const TraceModel& model, const isa::ProgramInfo& info) {
  return Encoder(model, info).Encode();
}

absl::StatusOr<TraceTotals> WritePerfettoTrace(const std::string& path,
                                               const configs::Config& config,
                                               const isa::ProgramInfo& info,
                                               const sim::Timeline& timeline) {
  ASSIGN_OR_RETURN(const TraceModel model, BuildTraceModel(config, info, timeline));
  RETURN_IF_ERROR(WriteFileAtomically(path, EncodePerfetto(model, info)));
  return TotalsOf(model);
}

}  // namespace tpusim::results
