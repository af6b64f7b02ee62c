// Slices of tracks, made from the spans of a device, one row at a time.
//
// A row shows the spans of one kind: "HBM DMA", "ICI x+". Everything
// here takes spans by start, the outer of nested ones first, and keeps only what is open,
// so it does not matter how many come.
#ifndef TPUSIM_SIM_RESULTS_TRACE_TRACE_ROWS_H_
#define TPUSIM_SIM_RESULTS_TRACE_TRACE_ROWS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "configs/memory.h"
#include "configs/topology.h"
#include "models/isa/program_info.h"
#include "sim/recording/span.h"
#include "sim/results/trace/trace_model.h"

namespace tpusim::results {

// Children of a device group, in this order.
enum Rank : int32_t {
  kSteps,
  kModules,
  kScopes,
  kTensorCore,
  kMxu,
  kVpu,
  kCollectives,
  kSparseCore,
  kCopies,
  kHbmDma,
  kIci,
  kDcn = kIci + configs::kDirections,
  kHost,
  kHbmBandwidth,
  kLinkUtilization,
  kLiveHbm = kLinkUtilization + configs::kDirections,
  kOtherMemories,  // bandwidth and live bytes of each
  // Owners have a row each, so this is the last.
  kOwnedHbm = kOtherMemories + 2 * (static_cast<int32_t>(configs::kRatedSpaces.size()) - 1),
  kRanks = kOwnedHbm + 64,
};
// Lanes of one kind follow each other: rank * kLanes + lane.
constexpr int32_t kLanes = 1 << 16;

struct TrackKind {
  std::string_view name;
  SliceDetail detail;
  bool nests;  // a stream's slices contain those of the same stream
};

TrackKind KindOf(sim::Track track);
// Links are rows of their own.
int32_t RankOf(const sim::Span& span);
// "ICI x+"
std::string RowName(const TrackKind& kind, int32_t rank);
// The order in which rows take their spans.
void SortRow(std::vector<const sim::Span*>& spans);

// Assigns lanes: work that overlaps gets the first one that is free.
class Lanes {
 public:
  explicit Lanes(bool nests) : nests_(nests) {}
  int32_t LaneOf(const sim::Span& span);
  int32_t size() const { return static_cast<int32_t>(open_.size()); }

 private:
  struct Open {
    Picoseconds end;
    int32_t stream;
  };
  bool nests_;
  std::vector<std::vector<Open>> open_;  // per lane
};

// Nested slices of the scopes of operations, which cover all that the stream executes:
// neighbours with a common prefix share it, an operation that contains others (a loop) keeps
// its own scopes open around theirs, and one without a scope is in those that its neighbours
// share, or else in "(no scope)".
class ScopeNester {
 public:
  struct NestedSlice {
    Picoseconds start, end;
    int32_t name = 0;
  };
  // Adds an operation of the stream.
  void Add(const isa::ProgramInfo& info, const sim::Span& op);
  // Returns all slices; their names are those of names().
  std::vector<NestedSlice> Finish();
  const std::vector<std::string>& names() const { return names_; }

 private:
  struct ExecutedOp {
    Picoseconds end;
    std::vector<std::string> path;
  };
  void EndUntil(Picoseconds now);
  size_t Common(const std::vector<std::string>& path) const;
  void OpenSlice(const std::string& name, Picoseconds start);
  void CloseTo(size_t depth);
  // "(no scope)" for what came since the last operation with one, but not beyond `until`.
  void AddUnscoped(Picoseconds until);

  std::vector<ExecutedOp> executed_;   // operations that may contain the next, outer ones first
  std::vector<std::string> open_;    // components of the current path
  std::vector<size_t> open_slices_;  // where they are in `slices_`
  Picoseconds last_{0};              // the current path reaches to here
  std::optional<std::pair<Picoseconds, Picoseconds>> unscoped_;
  std::vector<NestedSlice> slices_;
  std::vector<std::string> names_;
  std::map<std::string, int32_t> name_ids_;
};

// Selects the samples of a counter that a reader sees: changes, one per nanosecond.
class SampleFilter {
 public:
  // Samples of whole nanoseconds, which come in order of time.
  void Filter(const std::vector<const sim::CounterSample*>& samples, double scale,
              std::vector<TraceSample>& out);

 private:
  std::optional<double> last_;
};

// A counter as it is shown.
struct CounterKind {
  int32_t rank = 0;
  std::string name, unit;
  double scale = 1;  // from what was recorded
};
CounterKind KindOf(const configs::Config& config, const isa::ProgramInfo& info,
                   sim::Counter counter, int32_t lane);

}  // namespace tpusim::results

#endif  // TPUSIM_SIM_RESULTS_TRACE_TRACE_ROWS_H_
