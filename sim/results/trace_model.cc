#include "sim/results/trace_model.h"

#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "configs/status_macros.h"
#include "sim/results/text.h"
#include "sim/results/trace_source.h"

namespace tpusim::results {

absl::StatusOr<TraceModel> BuildTraceModel(const configs::Config& config,
                                           const isa::ProgramInfo& info,
                                           const sim::Timeline& timeline) {
  TraceSource source(config, info, timeline);
  RETURN_IF_ERROR(source.Open());
  TraceModel whole = source.model();
  while (source.Next()) {
    const TraceModel& window = source.model();
    for (size_t i = 0; i < window.tracks.size(); ++i) {
      const TraceTrack& from = window.tracks[i];
      TraceTrack& to = whole.tracks[i];
      to.slices.insert(to.slices.end(), from.slices.begin(), from.slices.end());
      to.samples.insert(to.samples.end(), from.samples.begin(), from.samples.end());
    }
  }
  whole.names = source.model().names;
  return whole;
}

void TraceCounter::Add(const TraceModel& model) {
  tracks_.resize(model.tracks.size());
  for (size_t i = 0; i < model.tracks.size(); ++i) {
    const TraceTrack& t = model.tracks[i];
    Track& of_track = tracks_[i];
    of_track.totals.slices += static_cast<int64_t>(t.slices.size());
    of_track.totals.samples += static_cast<int64_t>(t.samples.size());
    for (const TraceSlice& s : t.slices) {
      if (s.flow_in != 0) ++flows_;
      if (s.start < of_track.covered) continue;
      of_track.totals.busy_ns += TraceNanoseconds(s.end) - TraceNanoseconds(s.start);
      of_track.covered = s.end;
    }
    if (!of_track.totals.path.empty()) continue;
    of_track.totals.path = t.parent < 0 ? t.name : tracks_[t.parent].totals.path + "/" + t.name;
  }
}

TraceTotals TraceCounter::Totals() const {
  TraceTotals totals;
  totals.flows = flows_;
  for (const Track& t : tracks_) {
    totals.slices += t.totals.slices;
    totals.samples += t.totals.samples;
    if (t.totals.slices + t.totals.samples > 0) totals.tracks.push_back(t.totals);
  }
  return totals;
}

TraceTotals TotalsOf(const TraceModel& model) {
  TraceCounter counter;
  counter.Add(model);
  return counter.Totals();
}

std::string ToJson(const TraceTotals& totals, const Producer& producer) {
  nlohmann::ordered_json j = HeadOf("tpusim.trace_totals/1", producer);
  j["slices"] = totals.slices;
  j["flows"] = totals.flows;
  j["counter_samples"] = totals.samples;
  j["tracks"] = nlohmann::ordered_json::array();
  for (const TrackTotals& t : totals.tracks) {
    j["tracks"].push_back({{"path", t.path},
                           {"slices", t.slices},
                           {"busy_ns", t.busy_ns},
                           {"counter_samples", t.samples}});
  }
  return JsonText(j);
}

}  // namespace tpusim::results
