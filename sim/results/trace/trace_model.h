// The model of a trace: tracks with their slices and samples, and the totals that a reader of the
// file must find.
//
// One group of tracks per recorded device, named as JAX prints it; several are in a group of
// the slice. On a track, slices either nest (operations inside loops) or follow each other;
// work that overlaps gets tracks of its own, "HBM DMA", "HBM DMA 2", by the first one that is
// free. Perfetto counts whole nanoseconds: starts and ends are rounded down alike, so slices
// that did not overlap still do not.
//
// A model may hold the whole trace or a window of it: what begins there (trace_source.h).
#ifndef TPUSIM_SIM_RESULTS_TRACE_TRACE_MODEL_H_
#define TPUSIM_SIM_RESULTS_TRACE_TRACE_MODEL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "configs/units.h"
#include "sim/results/report/producer.h"

namespace tpusim::results {

// The amount of information in a slice about its operation.
enum class SliceDetail {
  kNone,       // steps, scopes
  kWork,       // a part of an operation: its name, bytes, grid step
  kOperation,  // the operation: shape, FLOPs, bytes, source line, scope
};

struct TraceSlice {
  Picoseconds start, end;
  int32_t name = 0;  // index into TraceModel::names
  int32_t op = -1;   // index into ProgramInfo::ops
  int64_t step = -1;
  Bytes bytes{0};
  int64_t merged = 0;     // grid steps' spans in it; 0 = it is one
  Picoseconds busy{0};    // if merged: the sum of their lengths
  uint64_t flow_out = 0;  // 0, or an arrow whose both ends are in the trace
  uint64_t flow_in = 0;
  bool flow_out_at_end = false;  // it leaves when the slice ends
  bool flow_in_at_end = false;   // it arrives when the slice ends
  bool flow_in_at_once = false;  // ... and left at that moment
  SliceDetail detail = SliceDetail::kNone;
};

struct TraceSample {
  Picoseconds time;
  double value = 0;
};

struct TraceTrack {
  std::string name;
  int32_t parent = -1;  // index into TraceModel::tracks, always smaller
  int32_t rank = 0;     // among its siblings
  bool is_counter = false;
  std::string unit;                  // of a counter
  std::vector<TraceSlice> slices;    // parents before children, by start
  std::vector<TraceSample> samples;  // changes only, one per nanosecond
};

struct TraceModel {
  std::vector<std::string> names;
  std::vector<TraceTrack> tracks;
};

constexpr int64_t TraceNanoseconds(Picoseconds t) { return t.value() / 1000; }

// Totals that a reader of the trace must find. A damaged Perfetto trace mostly loads without
// complaint, so only counting tells.
struct TrackTotals {
  std::string path;  // "chip 0 (0,0)/HBM DMA 2"
  int64_t slices = 0;
  int64_t busy_ns = 0;  // sum over outermost slices
  int64_t samples = 0;
};
struct TraceTotals {
  int64_t slices = 0, flows = 0, samples = 0;
  std::vector<TrackTotals> tracks;
};

// Totals of a trace, window by window.
class TraceCounter {
 public:
  void Add(const TraceModel& model);
  TraceTotals Totals() const;

 private:
  struct CountedTrack {
    TrackTotals totals;
    Picoseconds covered{-1};  // end of the last outermost slice
  };
  std::vector<CountedTrack> tracks_;
  int64_t flows_ = 0;
};
std::string ToJson(const TraceTotals& totals, const Producer& producer);

}  // namespace tpusim::results

#endif  // TPUSIM_SIM_RESULTS_TRACE_TRACE_MODEL_H_
