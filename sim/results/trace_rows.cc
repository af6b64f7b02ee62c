#include "sim/results/trace_rows.h"

#include <fmt/format.h>

#include <algorithm>

#include "configs/status_macros.h"
#include "sim/results/scope.h"

namespace tpusim::results {

using configs::Direction;
using sim::Span;

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
    case sim::Track::kCopies:
      return {"Copies", SliceDetail::kOperation, true};
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
    case sim::Track::kCopies:
      return kCopies;
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

std::string RowName(const TrackKind& kind, int32_t rank) {
  std::string name(kind.name);
  if (rank >= kIci && rank < kDcn) {
    name += fmt::format(" {}", DirectionName(static_cast<Direction>(rank - kIci)));
  }
  return name;
}

void SortRow(const TrackKind& kind, std::vector<const Span*>& spans) {
  std::stable_sort(spans.begin(), spans.end(), [&](const Span* a, const Span* b) {
    if (a->start != b->start) return a->start < b->start;
    // Outer before inner where slices nest; else instants before work.
    if (a->end != b->end) return kind.nests ? a->end > b->end : a->end < b->end;
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
  const bool contains = before_ && op.start < before_->end && op.end <= before_->end;
  if (before_ && !contains) AddLeaf(info, *before_);
  before_ = {op.start, op.end, op.op};
}

void ScopeNester::CloseTo(size_t depth) {
  while (open_.size() > depth) {
    slices_[open_slices_.back()].end = last_;
    open_.pop_back();
    open_slices_.pop_back();
  }
}

void ScopeNester::AddLeaf(const isa::ProgramInfo& info, const Op& op) {
  const std::vector<std::string> path = ScopesOf(info.ops[op.op].scope);
  size_t common = 0;
  while (common < open_.size() && common < path.size() && open_[common] == path[common]) ++common;
  CloseTo(common);
  for (size_t k = common; k < path.size(); ++k) {
    const auto [it, is_new] = name_ids_.emplace(path[k], static_cast<int32_t>(names_.size()));
    if (is_new) names_.push_back(path[k]);
    open_.push_back(path[k]);
    open_slices_.push_back(slices_.size());
    slices_.push_back({std::max(op.start, last_), Picoseconds(0), it->second});
  }
  last_ = std::max(last_, op.end);
}

std::vector<ScopeNester::Slice> ScopeNester::Finish(const isa::ProgramInfo& info) {
  if (before_) AddLeaf(info, *before_);
  before_.reset();
  CloseTo(0);
  return std::move(slices_);
}

absl::Status ArrowMatcher::Add(const Span& span) {
  if (span.flow_out != 0) {
    Ends& ends = open_[span.flow_out];
    if (ends.out) return absl::InternalError(fmt::format("arrow {} leaves twice", span.flow_out));
    ends.out = true;
    ends.leaves = span.start;
    RETURN_IF_ERROR(Match(span.flow_out));
  }
  if (span.flow_in != 0) {
    Ends& ends = open_[span.flow_in];
    if (ends.in) return absl::InternalError(fmt::format("arrow {} arrives twice", span.flow_in));
    ends.in = true;
    ends.arrives_in_start = span.start;
    ends.arrives_in_end = span.end;
    RETURN_IF_ERROR(Match(span.flow_in));
  }
  return absl::OkStatus();
}

absl::Status ArrowMatcher::Match(uint64_t arrow) {
  const auto it = open_.find(arrow);
  const Ends& ends = it->second;
  if (!ends.out || !ends.in) return absl::OkStatus();
  if (ends.arrives_in_end < ends.leaves) {
    return absl::InternalError(fmt::format("arrow {} leaves at {} ps and arrives before {} ps",
                                           arrow, ends.leaves.value(),
                                           ends.arrives_in_end.value()));
  }
  if (ends.arrives_in_start < ends.leaves) at_end_.insert(arrow);
  open_.erase(it);
  return absl::OkStatus();
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

CounterKind KindOf(const configs::Config& config, sim::Counter counter, int32_t lane) {
  switch (counter) {
    case sim::Counter::kHbmBandwidth:
      return {kHbmBandwidth, "HBM bandwidth", "GB/s", 1e-9};
    case sim::Counter::kLinkBandwidth:
      return {kLinkUtilization + lane,
              fmt::format("ICI {} utilization", DirectionName(static_cast<Direction>(lane))), "%",
              100 / config.chip.ici.link_bytes_per_second.value()};
    case sim::Counter::kLiveHbm:
      return {kLiveHbm, "Live HBM", "B", 1};
    case sim::Counter::kCmemBandwidth:
      return {kCmemBandwidth, "CMEM bandwidth", "GB/s", 1e-9};
    case sim::Counter::kLiveCmem:
      return {kLiveCmem, "Live CMEM", "B", 1};
  }
  return {};
}

}  // namespace tpusim::results
