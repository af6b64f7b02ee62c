#include "sim/results/trace_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "configs/status_macros.h"
#include "sim/results/scope.h"

namespace tpusim::results {
namespace {

using configs::Direction;
using sim::Span;

// Children of a device group, in this order.
enum Rank : int32_t {
  kSteps,
  kScopes,
  kTensorCore,
  kMxu,
  kVpu,
  kCollectives,
  kSparseCore,
  kHbmDma,
  kIci,
  kDcn = kIci + configs::kDirections,
  kHost,
  kHbmBandwidth,
  kLinkUtilization,
  kLiveHbm = kLinkUtilization + configs::kDirections,
  kCmemBandwidth,
  kLiveCmem,
  kRanks,
};
// Lanes of one kind follow each other: rank * kLanes + lane.
constexpr int32_t kLanes = 1 << 16;

struct TrackKind {
  std::string_view name;
  SliceDetail detail;
  bool nests;  // a stream's slices contain those of the same stream
};

TrackKind KindOf(sim::Track track) {
  switch (track) {
    case sim::Track::kTensorCore:
      return {"TensorCore", SliceDetail::kOperation, true};
    case sim::Track::kMxu:
      return {"MXU", SliceDetail::kWork, false};
    case sim::Track::kVpu:
      return {"VPU", SliceDetail::kWork, false};
    case sim::Track::kCollective:
      return {"Collectives", SliceDetail::kOperation, true};
    case sim::Track::kSparseCore:
      return {"SparseCore", SliceDetail::kOperation, true};
    case sim::Track::kHbmDma:
      return {"HBM DMA", SliceDetail::kWork, false};
    case sim::Track::kIci:
      return {"ICI", SliceDetail::kWork, false};
    case sim::Track::kDcn:
      return {"DCN", SliceDetail::kWork, false};
    case sim::Track::kHost:
      return {"Host", SliceDetail::kWork, false};
  }
  return {};
}

int32_t RankOf(const Span& s) {
  switch (s.track) {
    case sim::Track::kTensorCore:
      return kTensorCore;
    case sim::Track::kMxu:
      return kMxu;
    case sim::Track::kVpu:
      return kVpu;
    case sim::Track::kCollective:
      return kCollectives;
    case sim::Track::kSparseCore:
      return kSparseCore;
    case sim::Track::kHbmDma:
      return kHbmDma;
    case sim::Track::kIci:
      return kIci + s.lane;  // links are tracks of their own
    case sim::Track::kDcn:
      return kDcn;
    case sim::Track::kHost:
      return kHost;
  }
  return kRanks;
}

class Builder {
 public:
  Builder(const configs::Config& config, const isa::ProgramInfo& info,
          const sim::Timeline& timeline)
      : config_(config), info_(info), timeline_(timeline) {}

  absl::StatusOr<TraceModel> Build() {
    std::map<int32_t, std::vector<const Span*>> spans;
    std::map<int32_t, std::vector<const sim::CounterSample*>> samples;
    // A device that was recorded and did nothing is shown with an empty step.
    for (const int32_t device : timeline_.recorded_devices) spans[device];
    for (const Span& s : timeline_.spans) {
      RETURN_IF_ERROR(CheckSpan(s));
      spans[s.device].push_back(&s);
    }
    for (const sim::CounterSample& c : timeline_.counters) samples[c.device].push_back(&c);

    for (const auto& [device, of_device] : spans) {
      const int32_t group = Group(device);
      AddStep(device, group);
      AddScopes(of_device, group);
      AddSpans(of_device, group);
      AddCounters(samples[device], group);
    }
    RETURN_IF_ERROR(ResolveFlows());
    return std::move(model_);
  }

 private:
  absl::Status CheckSpan(const Span& s) const {
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

  int32_t Name(const std::string& name) {
    const auto [it, is_new] = name_ids_.emplace(name, static_cast<int32_t>(model_.names.size()));
    if (is_new) model_.names.push_back(name);
    return it->second;
  }

  int32_t AddTrack(std::string name, int32_t parent, int32_t rank) {
    TraceTrack t;
    t.name = std::move(name);
    t.parent = parent;
    t.rank = rank;
    model_.tracks.push_back(std::move(t));
    return static_cast<int32_t>(model_.tracks.size()) - 1;
  }

  // "chip 5 (1,1)", and "device 11" below it where chips have several.
  int32_t Group(int32_t device) {
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

  void AddStep(int32_t device, int32_t group) {
    const int32_t track = AddTrack("Steps", group, kSteps * kLanes);
    TraceSlice s;
    s.start = Picoseconds(0);
    s.end = timeline_.step_time;
    s.name = Name(device == timeline_.critical_device ? "step (critical device)" : "step");
    s.step = 0;
    model_.tracks[track].slices.push_back(s);
  }

  // Nested slices of the scopes of operations, where neighbours with a common
  // prefix share it. Operations that contain others (loops) leave the word to
  // what is inside.
  void AddScopes(const std::vector<const Span*>& spans, int32_t group) {
    std::vector<const Span*> ops;
    for (const Span* s : spans) {
      if (s->track == sim::Track::kTensorCore && s->op >= 0) ops.push_back(s);
    }
    int32_t stream = std::numeric_limits<int32_t>::max();
    for (const Span* s : ops) stream = std::min(stream, s->lane);
    std::erase_if(ops, [&](const Span* s) { return s->lane != stream; });
    std::stable_sort(ops.begin(), ops.end(), [](const Span* a, const Span* b) {
      return a->start != b->start ? a->start < b->start : a->end > b->end;
    });

    std::vector<TraceSlice> slices;
    std::vector<std::string> open;    // components of the current path
    std::vector<size_t> open_slices;  // where they are in `slices`
    const auto close_to = [&](size_t depth, Picoseconds end) {
      while (open.size() > depth) {
        slices[open_slices.back()].end = end;
        open.pop_back();
        open_slices.pop_back();
      }
    };
    Picoseconds last{0};
    for (size_t i = 0; i < ops.size(); ++i) {
      const bool contains_next =
          i + 1 < ops.size() && ops[i + 1]->start < ops[i]->end && ops[i + 1]->end <= ops[i]->end;
      if (contains_next) continue;
      const std::vector<std::string> path = ScopesOf(info_.ops[ops[i]->op].scope);
      size_t common = 0;
      while (common < open.size() && common < path.size() && open[common] == path[common]) ++common;
      close_to(common, last);
      for (size_t k = common; k < path.size(); ++k) {
        TraceSlice s;
        s.start = std::max(ops[i]->start, last);
        s.name = Name(path[k]);
        open.push_back(path[k]);
        open_slices.push_back(slices.size());
        slices.push_back(s);
      }
      last = std::max(last, ops[i]->end);
    }
    close_to(0, last);
    if (slices.empty()) return;
    const int32_t track = AddTrack("Scopes", group, kScopes * kLanes);
    model_.tracks[track].slices = std::move(slices);
  }

  void AddSpans(const std::vector<const Span*>& spans, int32_t group) {
    std::map<int32_t, std::vector<const Span*>> by_rank;
    for (const Span* s : spans) by_rank[RankOf(*s)].push_back(s);
    for (auto& [rank, of_kind] : by_rank) {
      const TrackKind kind = KindOf(of_kind[0]->track);
      std::stable_sort(of_kind.begin(), of_kind.end(), [&](const Span* a, const Span* b) {
        if (a->start != b->start) return a->start < b->start;
        // Outer before inner where slices nest; else instants before work.
        if (a->end != b->end) return kind.nests ? a->end > b->end : a->end < b->end;
        return a->lane < b->lane;
      });
      std::string name(kind.name);
      if (rank >= kIci && rank < kDcn) {
        name += fmt::format(" {}", DirectionName(static_cast<Direction>(rank - kIci)));
      }
      AddLanes(of_kind, kind, name, rank, group);
    }
  }

  void AddLanes(const std::vector<const Span*>& spans, const TrackKind& kind,
                const std::string& kind_name, int32_t kind_rank, int32_t group) {
    struct Open {
      Picoseconds end;
      int32_t stream;
    };
    struct Lane {
      int32_t track;
      std::vector<Open> open;
    };
    std::vector<Lane> lanes;
    for (const Span* s : spans) {
      size_t i = 0;
      for (; i < lanes.size(); ++i) {
        std::vector<Open>& open = lanes[i].open;
        while (!open.empty() && open.back().end <= s->start) open.pop_back();
        if (open.empty()) break;
        if (kind.nests && open.back().stream == s->lane && s->end <= open.back().end) break;
      }
      if (i == lanes.size()) {
        const std::string name = i == 0 ? kind_name : fmt::format("{} {}", kind_name, i + 1);
        const int32_t rank = kind_rank * kLanes + static_cast<int32_t>(i);
        lanes.push_back({AddTrack(name, group, rank), {}});
      }
      lanes[i].open.push_back({s->end, s->lane});
      TraceSlice slice;
      slice.start = s->start;
      slice.end = s->end;
      const std::string op = s->op >= 0 ? info_.ops[s->op].name : kind_name;
      // Operations are labels and move no bytes themselves; what does move some
      // on their track is a transfer that arrived.
      const bool arrival = kind.nests && s->bytes.value() != 0;
      slice.name = Name(arrival ? "arrival of " + op : op);
      slice.detail = arrival ? SliceDetail::kWork : kind.detail;
      slice.op = s->op;
      slice.step = s->step;
      slice.bytes = s->bytes;
      slice.flow_out = s->flow_out;
      slice.flow_in = s->flow_in;
      model_.tracks[lanes[i].track].slices.push_back(slice);
    }
  }

  void AddCounters(const std::vector<const sim::CounterSample*>& samples, int32_t group) {
    std::map<std::pair<int32_t, int32_t>, std::vector<const sim::CounterSample*>> by_rank;
    for (const sim::CounterSample* s : samples) {
      switch (s->counter) {
        case sim::Counter::kHbmBandwidth:
          by_rank[{kHbmBandwidth, 0}].push_back(s);
          break;
        case sim::Counter::kLinkBandwidth:
          by_rank[{kLinkUtilization + s->lane, s->lane}].push_back(s);
          break;
        case sim::Counter::kLiveHbm:
          by_rank[{kLiveHbm, 0}].push_back(s);
          break;
        case sim::Counter::kCmemBandwidth:
          by_rank[{kCmemBandwidth, 0}].push_back(s);
          break;
        case sim::Counter::kLiveCmem:
          by_rank[{kLiveCmem, 0}].push_back(s);
          break;
      }
    }
    for (auto& [key, of_kind] : by_rank) {
      const auto [rank, lane] = key;
      std::string name = "Live HBM", unit = "B";
      double scale = 1;
      if (rank == kLiveCmem) {
        name = "Live CMEM";
      } else if (rank == kHbmBandwidth || rank == kCmemBandwidth) {
        name = rank == kHbmBandwidth ? "HBM bandwidth" : "CMEM bandwidth";
        unit = "GB/s";
        scale = 1e-9;
      } else if (rank != kLiveHbm) {
        name = fmt::format("ICI {} utilization", DirectionName(static_cast<Direction>(lane)));
        unit = "%";
        scale = 100 / config_.chip.ici.link_bytes_per_second.value();
      }
      std::stable_sort(of_kind.begin(), of_kind.end(),
                       [](const sim::CounterSample* a, const sim::CounterSample* b) {
                         return a->time < b->time;
                       });
      const int32_t track = AddTrack(name, group, rank * kLanes);
      model_.tracks[track].is_counter = true;
      model_.tracks[track].unit = unit;
      std::vector<TraceSample>& out = model_.tracks[track].samples;
      for (const sim::CounterSample* s : of_kind) {
        const TraceSample sample = {s->time, s->value * scale};
        // The last value of a nanosecond is the one that holds after it.
        if (!out.empty() && TraceNanoseconds(out.back().time) == TraceNanoseconds(s->time)) {
          out.pop_back();
        }
        if (out.empty() || out.back().value != sample.value) out.push_back(sample);
      }
    }
  }

  // Arrows with an end on a device that is not in the trace are left out.
  absl::Status ResolveFlows() {
    struct Ends {
      TraceSlice* out = nullptr;
      TraceSlice* in = nullptr;
    };
    std::map<uint64_t, Ends> flows;
    for (TraceTrack& t : model_.tracks) {
      for (TraceSlice& s : t.slices) {
        if (s.flow_out != 0) {
          Ends& e = flows[s.flow_out];
          if (e.out != nullptr) {
            return absl::InternalError(fmt::format("arrow {} leaves twice", s.flow_out));
          }
          e.out = &s;
        }
        if (s.flow_in != 0) {
          Ends& e = flows[s.flow_in];
          if (e.in != nullptr) {
            return absl::InternalError(fmt::format("arrow {} arrives twice", s.flow_in));
          }
          e.in = &s;
        }
      }
    }
    for (auto& [id, e] : flows) {
      if (e.out == nullptr) e.in->flow_in = 0;
      if (e.in == nullptr) e.out->flow_out = 0;
      if (e.out == nullptr || e.in == nullptr) continue;
      e.in->flow_in_at_end = e.in->start < e.out->start;
      if (e.in->end < e.out->start) {
        return absl::InternalError(fmt::format("arrow {} leaves at {} ps and arrives before {} ps",
                                               id, e.out->start.value(), e.in->end.value()));
      }
    }
    return absl::OkStatus();
  }

  const configs::Config& config_;
  const isa::ProgramInfo& info_;
  const sim::Timeline& timeline_;
  TraceModel model_;
  std::map<std::string, int32_t> name_ids_;
  std::map<int64_t, int32_t> chip_groups_;
};

}  // namespace

absl::StatusOr<TraceModel> BuildTraceModel(const configs::Config& config,
                                           const isa::ProgramInfo& info,
                                           const sim::Timeline& timeline) {
  return Builder(config, info, timeline).Build();
}

TraceTotals TotalsOf(const TraceModel& model) {
  TraceTotals totals;
  std::vector<std::string> paths;
  for (const TraceTrack& t : model.tracks) {
    paths.push_back(t.parent < 0 ? t.name : paths[t.parent] + "/" + t.name);
    TrackTotals of_track;
    of_track.path = paths.back();
    of_track.slices = static_cast<int64_t>(t.slices.size());
    of_track.samples = static_cast<int64_t>(t.samples.size());
    Picoseconds covered{-1};  // end of the last outermost slice
    for (const TraceSlice& s : t.slices) {
      if (s.flow_in != 0) ++totals.flows;
      if (s.start < covered) continue;
      of_track.busy_ns += TraceNanoseconds(s.end) - TraceNanoseconds(s.start);
      covered = s.end;
    }
    totals.slices += of_track.slices;
    totals.samples += of_track.samples;
    if (of_track.slices + of_track.samples > 0) totals.tracks.push_back(std::move(of_track));
  }
  return totals;
}

std::string ToJson(const TraceTotals& totals) {
  nlohmann::ordered_json j = {{"schema", "tpusim.trace_totals/1"},
                              {"slices", totals.slices},
                              {"flows", totals.flows},
                              {"counter_samples", totals.samples}};
  j["tracks"] = nlohmann::ordered_json::array();
  for (const TrackTotals& t : totals.tracks) {
    j["tracks"].push_back({{"path", t.path},
                           {"slices", t.slices},
                           {"busy_ns", t.busy_ns},
                           {"counter_samples", t.samples}});
  }
  return j.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace tpusim::results
