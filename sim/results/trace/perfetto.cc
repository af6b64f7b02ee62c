#include "sim/results/trace/perfetto.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "configs/status_macros.h"
#include "sim/results/report/atomic_file.h"
#include "sim/results/trace/perfetto_trace.pb.h"
#include "sim/results/trace/trace_source.h"

namespace tpusim::results {
namespace {

namespace pb = ::tpusim::perfetto;

// One writer, so one sequence. What is interned lives until the sequence says
// that its state was cleared, which only its first packet does.
constexpr uint32_t kSequence = 1;

// Mean sizes in train steps of 30 layers, for estimates.
constexpr int64_t kBytesPerSlice = 75;
constexpr int64_t kBytesPerSample = 28;

// A point in the file. Perfetto keeps the file's order among equal
// nanoseconds, and an arrow's end may not come before its start: the exact
// time decides, then slices where arrows end that began at that moment come last. Within a track
// the order of its events is never changed by it, since all keys are monotone.
struct Event {
  enum RecordKind : uint8_t { kBegin, kEnd, kSample };
  Picoseconds time;
  bool after_arrows = false;
  RecordKind kind = kBegin;
  int32_t track = 0;
  int32_t index = 0;     // of the slice or sample
  uint64_t flow_in = 0;  // of an end: an arrow that ends with it, one that leaves with it
  uint64_t flow_out = 0;

  bool operator<(const Event& o) const {
    return std::tie(time, after_arrows) < std::tie(o.time, o.after_arrows);
  }
};

// Turns the slices of one track into begins and ends, window by window.
class TrackEvents {
 public:
  // Appends those before `until`.
  void Add(const TraceTrack& track, int32_t index, Picoseconds until, std::vector<Event>& events) {
    for (int32_t i = 0; i < static_cast<int32_t>(track.slices.size()); ++i) {
      const TraceSlice& s = track.slices[i];
      while (!open_.empty() && open_.back().end <= s.start) Close(index, events);
      Add({.time = s.start, .kind = Event::kBegin, .track = index, .index = i},
          s.flow_in_at_once && !s.flow_in_at_end, events);
      open_.push_back({s.end, s.flow_in_at_end ? s.flow_in : 0, s.flow_out_at_end ? s.flow_out : 0,
                       s.flow_in_at_once});
    }
    while (!open_.empty() && open_.back().end < until) Close(index, events);
    for (int32_t i = 0; i < static_cast<int32_t>(track.samples.size()); ++i) {
      Add({.time = track.samples[i].time, .kind = Event::kSample, .track = index, .index = i},
          false, events);
    }
  }

 private:
  struct Open {
    Picoseconds end;
    uint64_t flow_in = 0, flow_out = 0;
    bool at_once = false;
  };
  void Close(int32_t index, std::vector<Event>& events) {
    const Open slice = open_.back();
    open_.pop_back();
    Add({.time = slice.end,
         .kind = Event::kEnd,
         .track = index,
         .flow_in = slice.flow_in,
         .flow_out = slice.flow_out},
        slice.flow_in != 0 && slice.at_once, events);
  }
  void Add(Event event, bool sink, std::vector<Event>& events) {
    after_arrows_ = sink || (event.time == last_ && after_arrows_);
    last_ = event.time;
    event.after_arrows = after_arrows_;
    events.push_back(event);
  }

  std::vector<Open> open_;
  Picoseconds last_{-1};  // time of the last event
  bool after_arrows_ = false;
};

class Encoder {
 public:
  // Until the end, the model's tracks stay what they are; slices come and go.
  Encoder(const TraceModel& model, const isa::ProgramInfo& info)
      : model_(model), info_(info), tracks_(model.tracks.size()) {
    std::vector<bool> is_parent(model_.tracks.size(), false);
    for (const TraceTrack& t : model_.tracks) {
      if (t.parent >= 0) is_parent[t.parent] = true;
    }
    for (size_t i = 0; i < model_.tracks.size(); ++i) WriteTrack(i, is_parent[i]);
  }

  // The slices in the model, after which all others begin at `until` or later.
  void Write(Picoseconds until) {
    events_.clear();
    for (size_t i = 0; i < tracks_.size(); ++i) {
      tracks_[i].Add(model_.tracks[i], static_cast<int32_t>(i), until, events_);
    }
    std::stable_sort(events_.begin(), events_.end());
    for (const Event& e : events_) WriteEvent(e);
  }

  // Returns the bytes that were written and not taken yet.
  std::string& bytes() { return bytes_; }

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
      // Bytes are whole, and so take less.
      const double value = track.samples[e.index].value;
      if (track.unit == "B") {
        event.set_counter_value(static_cast<int64_t>(value));
      } else {
        event.set_double_counter_value(value);
      }
      Flush(/*refers=*/false);
      return;
    }
    if (e.kind == Event::kEnd) {
      event.set_type(pb::TrackEvent::TYPE_SLICE_END);
      if (e.flow_out != 0) event.add_flow_ids(e.flow_out);
      if (e.flow_in != 0) event.add_terminating_flow_ids(e.flow_in);
      Flush(/*refers=*/false);
      return;
    }
    const TraceSlice& s = track.slices[e.index];
    event.set_type(pb::TrackEvent::TYPE_SLICE_BEGIN);
    event.set_name_iid(EventName(model_.names[s.name]));
    if (s.flow_out != 0 && !s.flow_out_at_end) event.add_flow_ids(s.flow_out);
    AddArguments(s, event);
    if (s.flow_in != 0 && !s.flow_in_at_end) event.add_terminating_flow_ids(s.flow_in);
    Flush();
  }

  void AddArguments(const TraceSlice& s, pb::TrackEvent& event) {
    if (s.op >= 0 && s.detail != SliceDetail::kNone) {
      const isa::OpInfo& op = info_.ops[s.op];
      // A piece that has the name of its operation says so once.
      if (s.detail == SliceDetail::kOperation || model_.names[s.name] != op.name) {
        Text(event, "hlo", op.name);
      }
      if (s.detail == SliceDetail::kOperation) {
        if (!op.category.empty()) event.add_category_iids(Category(op.category));
        Text(event, "shape", op.shape);
        if (op.flops.value() != 0) Integer(event, "flops", op.flops.value());
        if (op.hbm_bytes.value() != 0) Integer(event, "hbm_bytes", op.hbm_bytes.value());
        Text(event, "op_name", op.scope);
        if (op.collective >= 0) AddCollective(info_.collectives[op.collective], event);
        Text(event, "source", op.source);
      }
    }
    if (s.bytes.value() != 0) Integer(event, "bytes", s.bytes.value());
    if (s.step >= 0) Integer(event, "step", s.step);
    if (s.merged > 0) {
      Integer(event, "merged", s.merged);
      Real(event, "busy_ns", ToNanoseconds(s.busy));
    }
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
    a.set_name_iid(Interned(argument_names_, name,
                            [this] { return interned().add_debug_annotation_names(); }));
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
    const uint64_t id = Interned(
        strings_, value, [this] { return interned().add_debug_annotation_string_values(); });
    Argument(event, name).set_string_value_iid(id);
  }
  uint64_t EventName(const std::string& name) {
    return Interned(event_names_, name, [this] { return interned().add_event_names(); });
  }
  uint64_t Category(const std::string& name) {
    return Interned(categories_, name, [this] { return interned().add_event_categories(); });
  }

  using Ids = std::map<std::string, uint64_t>;
  pb::InternedData& interned() { return *packet_.mutable_interned_data(); }
  // The number of a text; a new one gets an entry, which `add` makes in this packet.
  template <typename Add>
  static uint64_t Interned(Ids& ids, const std::string& text, const Add& add) {
    const auto [it, is_new] = ids.emplace(text, ids.size() + 1);
    if (!is_new) return it->second;
    auto* entry = add();
    entry->set_iid(it->second);
    if constexpr (requires { entry->set_name(text); }) {
      entry->set_name(text);
    } else {
      entry->set_str(text);
    }
    return it->second;
  }

  // Appends the packet as one element of Trace.packet, so that the whole trace
  // never exists as messages. `refers`: to names that an earlier packet has.
  void Flush(bool refers = true) {
    packet_.set_trusted_packet_sequence_id(kSequence);
    uint32_t flags = refers ? pb::TracePacket::SEQ_NEEDS_INCREMENTAL_STATE : 0;
    if (!std::exchange(begun_, true)) flags |= pb::TracePacket::SEQ_INCREMENTAL_STATE_CLEARED;
    if (flags != 0) packet_.set_sequence_flags(flags);
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
  std::vector<TrackEvents> tracks_;
  std::vector<Event> events_;  // of a window
  std::string bytes_;
  bool begun_ = false;
  pb::TracePacket packet_;
  Ids event_names_, categories_, argument_names_, strings_;
};

}  // namespace

absl::StatusOr<TraceTotals> WritePerfettoTrace(const std::string& path,
                                               const configs::Config& config,
                                               const isa::ProgramInfo& info,
                                               const sim::Timeline& timeline,
                                               TraceListener* listener) {
  TraceSource source(config, info, timeline);
  RETURN_IF_ERROR(source.Open());
  if (listener != nullptr) {
    listener->Begins(source.slices() * kBytesPerSlice + source.samples() * kBytesPerSample);
  }
  ASSIGN_OR_RETURN(OutputFile file, OutputFile::Open(path));
  Encoder encoder(source.model(), info);
  TraceCounter counter;
  int64_t written = 0;
  while (source.Next()) {
    encoder.Write(source.until());
    counter.Add(source.model());
    RETURN_IF_ERROR(file.Append(encoder.bytes()));
    written += static_cast<int64_t>(encoder.bytes().size());
    encoder.bytes().clear();
    if (listener != nullptr) listener->Written(written);
  }
  RETURN_IF_ERROR(file.Finish());
  return counter.Totals();
}

}  // namespace tpusim::results
