#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "configs/status_macros.h"
#include "sim/results/page/page.h"
#include "sim/results/trace/trace_source.h"

namespace tpusim::results {
namespace {

using TimelineTree = nlohmann::ordered_json;

// The limit of slices in each track of a page.
constexpr size_t kMostSlices = 20'000;
constexpr size_t kMostSamples = 4'000;

struct ShownTrack {
  std::string name, unit;
  bool is_counter = false;
  std::vector<TraceSlice> slices;
  std::vector<TraceSample> samples;
};

// Keeps the longest.
int64_t Thin(std::vector<TraceSlice>& slices) {
  if (slices.size() <= kMostSlices) return 0;
  std::vector<Picoseconds> lengths;
  for (const TraceSlice& s : slices) lengths.push_back(s.end - s.start);
  std::nth_element(lengths.begin(), lengths.begin() + kMostSlices, lengths.end(), std::greater<>());
  const Picoseconds shortest = lengths[kMostSlices];
  return static_cast<int64_t>(
      std::erase_if(slices, [&](const TraceSlice& s) { return s.end - s.start <= shortest; }));
}

// Keeps the first and the largest sample of each of so many parts of the step: peaks stay.
void Thin(std::vector<TraceSample>& samples, Picoseconds step) {
  if (samples.size() <= kMostSamples) return;
  const double width = static_cast<double>(step.value()) / (kMostSamples / 2);
  std::vector<TraceSample> kept;
  for (size_t i = 0; i < samples.size();) {
    const auto part = static_cast<int64_t>(static_cast<double>(samples[i].time.value()) / width);
    size_t end = i, largest = i;
    for (; end < samples.size(); ++end) {
      if (static_cast<int64_t>(static_cast<double>(samples[end].time.value()) / width) != part) {
        break;
      }
      if (samples[end].value > samples[largest].value) largest = end;
    }
    kept.push_back(samples[i]);
    if (largest != i) kept.push_back(samples[largest]);
    i = end;
  }
  samples = std::move(kept);
}

}  // namespace

absl::StatusOr<std::string> TimelineJson(const configs::Config& config,
                                         const isa::ProgramInfo& info,
                                         const sim::Timeline& timeline) {
  if (timeline.recorded_devices.empty()) return std::string();
  const auto& recorded = timeline.recorded_devices;
  const bool critical =
      std::find(recorded.begin(), recorded.end(), timeline.critical_device) != recorded.end();
  const std::string device =
      JaxNames(config)[critical ? timeline.critical_device : recorded.front()];
  TraceSource source(config, info, timeline);
  RETURN_IF_ERROR(source.Open());
  const std::vector<TraceTrack>& tracks = source.model().tracks;
  std::map<int32_t, std::pair<size_t, ShownTrack>> shown;  // by rank; where it is in the model
  for (size_t i = 0; i < tracks.size(); ++i) {
    if (tracks[i].parent < 0 || tracks[tracks[i].parent].name != device) continue;
    shown[tracks[i].rank] = {i, {tracks[i].name, tracks[i].unit, tracks[i].is_counter, {}, {}}};
  }
  while (source.Next()) {
    for (auto& [rank, track] : shown) {
      const TraceTrack& from = source.model().tracks[track.first];
      ShownTrack& to = track.second;
      to.slices.insert(to.slices.end(), from.slices.begin(), from.slices.end());
      to.samples.insert(to.samples.end(), from.samples.begin(), from.samples.end());
    }
  }

  TimelineTree j = {{"device", device}, {"end_ns", TraceNanoseconds(timeline.step_time)}};
  TimelineTree names = TimelineTree::array(), ops = TimelineTree::array();
  TimelineTree out = TimelineTree::array();
  std::map<int32_t, size_t> name_of, op_of;
  int64_t left_out = 0;
  for (auto& [rank, entry] : shown) {
    ShownTrack& track = entry.second;
    left_out += Thin(track.slices);
    Thin(track.samples, timeline.step_time);
    TimelineTree t = {{"name", track.name}};
    if (track.is_counter) {
      t["unit"] = track.unit;
      TimelineTree samples = TimelineTree::array();
      for (const TraceSample& s : track.samples) {
        samples.push_back(TraceNanoseconds(s.time));
        samples.push_back(s.value);
      }
      t["samples"] = std::move(samples);
    } else {
      TimelineTree slices = TimelineTree::array();
      for (const TraceSlice& s : track.slices) {
        const auto [name, new_name] = name_of.emplace(s.name, names.size());
        if (new_name) names.push_back(source.model().names[s.name]);
        int64_t op = -1;
        if (s.op >= 0 && s.detail != SliceDetail::kNone) {
          const auto [at, new_op] = op_of.emplace(s.op, ops.size());
          if (new_op) {
            const isa::OpInfo& o = info.ops[s.op];
            ops.push_back({{"category", o.category},
                           {"scope", o.scope},
                           {"source", o.source},
                           {"shape", o.shape},
                           {"flops", o.flops.value()},
                           {"hbm_bytes", o.hbm_bytes.value()}});
          }
          op = static_cast<int64_t>(at->second);
        }
        // Start, length, name, operation.
        slices.push_back(TraceNanoseconds(s.start));
        slices.push_back(TraceNanoseconds(s.end) - TraceNanoseconds(s.start));
        slices.push_back(name->second);
        slices.push_back(op);
      }
      t["slices"] = std::move(slices);
    }
    out.push_back(std::move(t));
  }
  j["names"] = std::move(names);
  j["ops"] = std::move(ops);
  j["tracks"] = std::move(out);
  j["left_out"] = left_out;
  return j.dump(-1, ' ', false, TimelineTree::error_handler_t::replace);
}

}  // namespace tpusim::results
