#include "sim/results/trace/trace_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "configs/memory.h"
#include "sim/results/report/scope.h"

namespace tpusim::results {

using configs::Direction;
using sim::Span;

namespace {

struct TrackRow {
  TrackKind kind;
  Rank rank;
};
// In the order of sim::Track.
constexpr TrackRow kTracks[] = {
    {{"TensorCore", SliceDetail::kOperation, true}, kTensorCore},
    {{"MXU", SliceDetail::kWork, false}, kMxu},
    {{"VPU", SliceDetail::kWork, false}, kVpu},
    {{"Collectives", SliceDetail::kOperation, true}, kCollectives},
    {{"SparseCore", SliceDetail::kOperation, true}, kSparseCore},
    {{"Copies", SliceDetail::kOperation, true}, kCopies},
    {{"HBM DMA", SliceDetail::kWork, false}, kHbmDma},
    {{"ICI", SliceDetail::kWork, false}, kIci},
    {{"DCN", SliceDetail::kWork, false}, kDcn},
    {{"Host", SliceDetail::kWork, false}, kHost},
};
static_assert(std::size(kTracks) == static_cast<size_t>(sim::Track::kHost) + 1);

}  // namespace

TrackKind KindOf(sim::Track track) { return kTracks[static_cast<size_t>(track)].kind; }

int32_t RankOf(const Span& s) {
  const Rank rank = kTracks[static_cast<size_t>(s.track)].rank;
  return rank == kIci ? rank + s.lane : rank;  // links are tracks of their own
}

std::string RowName(const TrackKind& kind, int32_t rank) {
  std::string name(kind.name);
  if (rank >= kIci && rank < kDcn) {
    name += fmt::format(" {}", DirectionName(static_cast<Direction>(rank - kIci)));
  }
  return name;
}

void SortRow(std::vector<const Span*>& spans) {
  std::stable_sort(spans.begin(), spans.end(), [](const Span* a, const Span* b) {
    if (a->start != b->start) return a->start < b->start;
    // Operations in the order in which they began, so that the outer one comes first and one
    // that took no time is not in its neighbour; else instants before work.
    if (a->order != b->order) return a->order < b->order;
    if (a->end != b->end) return a->end < b->end;
    return a->lane < b->lane;
  });
}

int32_t Lanes::LaneOf(const Span& span) {
  size_t lane = 0;
  for (; lane < open_.size(); ++lane) {
    std::vector<Open>& open = open_[lane];
    while (!open.empty() && open.back().end <= span.start) open.pop_back();
    if (open.empty()) break;
    if (nests_ && open.back().stream == span.lane && span.end <= open.back().end) break;
  }
  if (lane == open_.size()) open_.emplace_back();
  open_[lane].push_back({span.end, span.lane});
  return static_cast<int32_t>(lane);
}

void ScopeNester::Add(const isa::ProgramInfo& info, const Span& op) {
  EndUntil(op.start);
  std::vector<std::string> path = ScopesOf(info.ops[op.op].scope);
  if (path.empty()) {
    if (!unscoped_) unscoped_ = {op.start, op.end};
    unscoped_->second = std::max(unscoped_->second, op.end);
    return;
  }
  const size_t common = Common(path);
  CloseTo(common);
  // What had none is inside of what its neighbours share.
  if (common == 0) AddUnscoped(op.start);
  unscoped_.reset();
  last_ = std::max(last_, op.start);
  for (size_t k = common; k < path.size(); ++k) OpenSlice(path[k], last_);
  executed_.push_back({op.end, std::move(path)});
}

// Scopes of an operation reach to its end, those of what it contains do not.
void ScopeNester::EndUntil(Picoseconds now) {
  while (!executed_.empty() && executed_.back().end <= now) {
    CloseTo(Common(executed_.back().path));
    last_ = std::max(last_, executed_.back().end);
    executed_.pop_back();
  }
}

size_t ScopeNester::Common(const std::vector<std::string>& path) const {
  const size_t most = std::min(open_.size(), path.size());
  size_t common = 0;
  while (common < most && open_[common] == path[common]) ++common;
  return common;
}

void ScopeNester::OpenSlice(const std::string& name, Picoseconds start) {
  const auto [it, is_new] = name_ids_.emplace(name, static_cast<int32_t>(names_.size()));
  if (is_new) names_.push_back(name);
  open_.push_back(name);
  open_slices_.push_back(slices_.size());
  slices_.push_back({start, start, it->second});
}

void ScopeNester::CloseTo(size_t depth) {
  while (open_.size() > depth) {
    slices_[open_slices_.back()].end = last_;
    open_.pop_back();
    open_slices_.pop_back();
  }
}

void ScopeNester::AddUnscoped(Picoseconds until) {
  if (!unscoped_) return;
  const auto [start, end] = *unscoped_;
  last_ = std::max(last_, start);
  OpenSlice("(no scope)", last_);
  last_ = std::max(last_, std::min(end, until));
  CloseTo(open_.size() - 1);
}

std::vector<ScopeNester::NestedSlice> ScopeNester::Finish() {
  constexpr Picoseconds kEnd{std::numeric_limits<int64_t>::max()};
  EndUntil(kEnd);
  CloseTo(0);
  AddUnscoped(kEnd);
  std::erase_if(slices_, [](const NestedSlice& s) { return s.start == s.end; });
  return std::move(slices_);
}

void SampleFilter::Filter(const std::vector<const sim::CounterSample*>& samples, double scale,
                          std::vector<TraceSample>& out) {
  const size_t first = out.size();
  for (const sim::CounterSample* s : samples) {
    const TraceSample sample = {s->time, s->value * scale};
    // The last value of a nanosecond is the one that holds after it.
    if (out.size() > first && TraceNanoseconds(out.back().time) == TraceNanoseconds(s->time)) {
      out.pop_back();
    }
    const std::optional<double> before =
        out.size() > first ? std::optional<double>(out.back().value) : last_;
    if (before != sample.value) out.push_back(sample);
  }
  if (out.size() > first) last_ = out.back().value;
}

CounterKind KindOf(const configs::Config& config, const isa::ProgramInfo& info,
                   sim::Counter counter, int32_t lane) {
  const auto memory = [&] { return configs::kMemories[static_cast<size_t>(lane)].title; };
  const int32_t of_memory = kOtherMemories + 2 * (lane - 1);  // HBM is the first
  switch (counter) {
    case sim::Counter::kBandwidth:
      return {lane == 0 ? kHbmBandwidth : of_memory, fmt::format("{} bandwidth", memory()), "GB/s",
              1e-9};
    case sim::Counter::kLinkBandwidth:
      return {kLinkUtilization + lane,
              fmt::format("ICI {} utilization", DirectionName(static_cast<Direction>(lane))), "%",
              100 / config.chip.ici.link_bytes_per_second.value()};
    case sim::Counter::kLive:
      return {lane == 0 ? kLiveHbm : of_memory + 1, fmt::format("Live {}", memory()), "B", 1};
    case sim::Counter::kOwnedHbm:
      return {kOwnedHbm + lane, "Live HBM: " + info.owners[lane], "B", 1};
  }
  return {};
}

}  // namespace tpusim::results
