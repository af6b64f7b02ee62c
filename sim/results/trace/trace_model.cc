#include "sim/results/trace/trace_model.h"

#include <nlohmann/json.hpp>

#include "sim/results/report/text.h"

namespace tpusim::results {

void TraceCounter::Add(const TraceModel& model) {
  tracks_.resize(model.tracks.size());
  for (size_t i = 0; i < model.tracks.size(); ++i) {
    const TraceTrack& t = model.tracks[i];
    CountedTrack& of_track = tracks_[i];
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
  for (const CountedTrack& t : tracks_) {
    totals.slices += t.totals.slices;
    totals.samples += t.totals.samples;
    if (t.totals.slices + t.totals.samples > 0) totals.tracks.push_back(t.totals);
  }
  return totals;
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
