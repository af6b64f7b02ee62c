// The trace of a recording in windows of time, so that no part of it needs to be in memory as a
// whole.
//
// The room answers what Perfetto and XProf show of a step: perfetto.h and xplane.h write files, the
// page draws the same tracks. The recording is read twice, or three times if steps may be merged,
// first of all to find the rings (trace_rings.h). The first of the two passes counts tracks, slices
// and arrows, the second one returns them. In memory stay the scopes (a few words per executed
// operation) and what is open; a whole trace in memory was rejected, as it grows with devices and
// passes. `TraceSource` is the entry point.
#ifndef TPUSIM_SIM_RESULTS_TRACE_TRACE_SOURCE_H_
#define TPUSIM_SIM_RESULTS_TRACE_TRACE_SOURCE_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "configs/config.h"
#include "models/isa/program_info.h"
#include "sim/recording/recording.h"
#include "sim/results/trace/trace_arrows.h"
#include "sim/results/trace/trace_model.h"
#include "sim/results/trace/trace_pod.h"
#include "sim/results/trace/trace_rings.h"
#include "sim/results/trace/trace_rows.h"
#include "sim/timeline.h"

namespace tpusim::results {

inline constexpr Picoseconds kEndOfTime{std::numeric_limits<int64_t>::max()};

// Returns the name of every device as JAX prints it: "TPU_5(process=0,(1,1,0,0))".
std::vector<std::string> JaxNames(const configs::Config& config);

class TraceSource {
 public:
  // Reads a timeline; all arguments must outlive the source.
  TraceSource(const configs::Config& config, const isa::ProgramInfo& info,
              const sim::Timeline& timeline);

  // Reads for the first time. Error (internal): spans that end before they start, unknown
  // operations, arrows that arrive before they left.
  absl::Status Open();
  // Returns how many slices will come; of samples, how many at most.
  int64_t slices() const { return slice_count_; }
  int64_t samples() const { return sample_count_; }
  // The next window, in model(). False: there is none.
  bool Next();
  // Slices that begin in the window; tracks without any before the first Next.
  const TraceModel& model() const { return model_; }
  // The end of the window: all that comes later begins then or after it. kEndOfTime: the last.
  Picoseconds until() const { return until_; }

 private:
  struct SpanRow {
    SpanRow(const TrackKind& of, std::string row_name)
        : kind(of), name(std::move(row_name)), lanes(of.nests) {}
    TrackKind kind;
    std::string name;
    Lanes lanes;
    std::vector<int32_t> tracks;          // by lane
    std::vector<const sim::Span*> spans;  // of the window
    RingSpans in_rings;
    std::vector<std::pair<int32_t, sim::Span>> merged;  // with their lanes, by start
    size_t next_merged = 0;
  };
  struct CounterRow {
    CounterKind kind;
    SampleFilter filter;
    int32_t track = -1;
    std::vector<const sim::CounterSample*> samples;  // of the window
    RingRates in_rings;
    std::vector<sim::CounterSample> thinned;  // by time
    size_t next_thinned = 0;
  };
  // Slices that are known before the windows, by start.
  struct EarlySlices {
    int32_t track = -1;
    std::vector<ScopeNester::NestedSlice> slices;
    size_t next = 0;
  };
  struct RecordedDevice {
    DeviceRings rings;
    std::map<int32_t, SpanRow> rows;             // by rank
    std::map<int32_t, CounterRow> counters;  // by rank
    std::map<int32_t, ScopeNester> scopes;   // by stream
    EarlySlices scope_slices;
    int32_t steps_track = -1, modules_track = -1;
  };

  absl::Status CheckSpan(const sim::Span& span) const;
  // Slices of a lane in a ring.
  int64_t RingLimit() const { return std::max<int64_t>(timeline_.recorded_steps / 4, 1); }
  void MergeRings();
  // One summary for each class of the recorded devices, if these are many.
  void OpenPod();
  void AddPodTracks();
  void AddKnown(EarlySlices& known);
  void AddSlices(SpanRow& row, const RecordedDevice& device);
  void AddSamples(CounterRow& row, const RecordedDevice& device);
  // Sorts what was read onto the rows, spans by start and samples by time.
  void SortOntoRows();
  SpanRow& RowOf(RecordedDevice& device, const sim::Span& span);
  void AddTracks();
  int32_t AddTrack(std::string name, int32_t parent, int32_t rank);
  int32_t Group(int32_t device);
  void AddStep(RecordedDevice& device, bool critical);
  int32_t Name(const std::string& name);
  int32_t NameOf(const SpanRow& row, int32_t op, bool arrival);
  TraceSlice SliceOf(const SpanRow& row, const sim::Span& span);

  const configs::Config& config_;
  const isa::ProgramInfo& info_;
  const sim::Timeline& timeline_;
  std::optional<sim::RecordingReader> reader_;
  std::vector<sim::Span> spans_;  // of the window
  std::vector<sim::CounterSample> samples_;
  struct PodTrack {
    PodSummary summary;
    int64_t devices = 0;  // recorded ones of the class
    EarlySlices shown = {};
  };
  std::map<int32_t, RecordedDevice> devices_;
  std::map<int32_t, PodTrack> pod_;  // by the first recorded device of each class
  ArrowMatcher arrows_;
  FlightMatcher flights_;
  TraceModel model_;
  std::map<std::string, int32_t> name_ids_;
  std::vector<int32_t> op_names_;  // by operation, -1 = not looked up yet
  const std::vector<std::string> device_names_;
  const std::vector<int64_t> device_numbers_;
  int32_t slice_group_ = -1;  // of several devices
  int64_t slice_count_ = 0, sample_count_ = 0;
  bool first_ = true;  // the next window is
  bool last_ = false;  // the window was
  Picoseconds until_{0};
};

}  // namespace tpusim::results

#endif  // TPUSIM_SIM_RESULTS_TRACE_TRACE_SOURCE_H_
