#include "sim/results/trace/trace_rings.h"

#include <algorithm>
#include <limits>
#include <string>

#include "sim/results/trace/trace_rows.h"

namespace tpusim::results {

using sim::Span;

namespace {

// Operations move no bytes; what does move some on their tracks is a transfer that arrived.
bool IsOperation(const Span& span) { return span.bytes == Bytes(0) && span.merged == 0; }
bool IsFlight(const Span& span) {
  return span.track == sim::Track::kCollective || span.track == sim::Track::kSparseCore;
}

// The one that `time` is in, or at whose end it is, or null.
const Ring* RingAt(const std::vector<Ring>& rings, Picoseconds time) {
  auto after = std::ranges::upper_bound(rings, time, {}, &Ring::start);
  if (after == rings.begin()) return nullptr;
  --after;
  return time <= after->end ? &*after : nullptr;
}

}  // namespace

void RingFinder::CloseUntil(Picoseconds now) {
  while (!open_.empty() && open_.back().loop.end <= now) {
    const Open& last = open_.back();
    if (!last.has_loops && last.loop.end - last.loop.start <= longest_) rings_.push_back(last.loop);
    open_.pop_back();
  }
}

void RingFinder::Add(const Span& op) {
  CloseUntil(op.start);
  if (op.op < 0) return;
  if (info_->ops[op.op].category != "while") return;
  if (!open_.empty()) open_.back().has_loops = true;
  open_.push_back({{op.op, op.start, op.end}, false});
}

std::vector<Ring> RingFinder::Finish() {
  CloseUntil(Picoseconds(std::numeric_limits<int64_t>::max()));
  std::ranges::stable_sort(rings_, {}, &Ring::start);
  return std::move(rings_);
}

const Ring* DeviceRings::Of(const Span& span) const {
  switch (span.track) {
    case sim::Track::kMxu:
    case sim::Track::kVpu:
    case sim::Track::kHbmDma:
      return RingAt(loops, span.start);
    case sim::Track::kIci:
    case sim::Track::kCollective:
    case sim::Track::kSparseCore: {
      // An arrow has an end of its own.
      if (IsOperation(span) || span.flow_out != 0 || span.flow_in != 0) return nullptr;
      const auto of = flights.find(span.op);
      return of == flights.end() ? nullptr : RingAt(of->second, span.start);
    }
    default:
      return nullptr;
  }
}

const Ring* DeviceRings::Of(const sim::CounterSample& sample) const {
  const bool rate =
      sample.counter == sim::Counter::kBandwidth || sample.counter == sim::Counter::kLinkBandwidth;
  const Ring* ring = rate ? RingAt(loops, sample.time) : nullptr;
  // What is set at its end holds after it.
  return ring == nullptr || sample.time == ring->end ? nullptr : ring;
}

std::map<int32_t, DeviceRings> FindRings(const isa::ProgramInfo& info,
                                         const sim::Timeline& timeline) {
  constexpr int64_t kShare = 100;
  std::map<int32_t, DeviceRings> rings;
  std::map<int32_t, RingFinder> finders;
  sim::RecordingReader reader(timeline.recording);
  std::vector<Span> spans;
  std::vector<sim::CounterSample> samples;
  while (reader.Next(spans, samples)) {
    std::map<int32_t, std::vector<const Span*>> main;
    for (const Span& span : spans) {
      if (!IsOperation(span)) continue;
      if (span.track == sim::Track::kTensorCore) main[span.device].push_back(&span);
      if (IsFlight(span)) {
        rings[span.device].flights[span.op].push_back({span.op, span.start, span.end});
      }
    }
    for (auto& [device, of] : main) {
      SortRow(of);
      RingFinder& finder =
          finders.try_emplace(device, info, timeline.step_time / kShare).first->second;
      for (const Span* span : of) finder.Add(*span);
    }
  }
  for (auto& [device, finder] : finders) rings[device].loops = finder.Finish();
  for (auto& [device, of] : rings) {
    for (auto& [op, flights] : of.flights) std::ranges::stable_sort(flights, {}, &Ring::start);
  }
  return rings;
}

void RingSpans::Add(const Ring& ring, int64_t limit, int32_t lane, const Span& span) {
  if (static_cast<int32_t>(lanes_.size()) <= lane) lanes_.resize(lane + 1);
  Lane& of = lanes_[lane];
  if (of.ring != &ring) {
    Close(lane, of);
    of.ring = &ring;
  }
  const auto merge = [&](Span& into, const Span& later) {
    const bool same = into.op == later.op;
    sim::MergeSpans(into, later);
    if (same) return;
    into.op = ring.op;
    into.step = -1;  // Of which operation would not be said.
  };
  of.spans.Add(span, limit, merge);
}

void RingSpans::Close(int32_t lane, Lane& of) {
  for (const Span& span : of.spans.entries()) merged_.emplace_back(lane, span);
  of = Lane();
}

const std::vector<std::pair<int32_t, Span>>& RingSpans::Finish() {
  for (size_t lane = 0; lane < lanes_.size(); ++lane) {
    Close(static_cast<int32_t>(lane), lanes_[lane]);
  }
  std::ranges::stable_sort(merged_, {}, [](const auto& m) { return m.second.start; });
  return merged_;
}

void RingRates::Add(const Ring* ring, int64_t limit, const sim::CounterSample& sample) {
  if (ring != ring_) {
    Close();
    ring_ = ring;
    before_ = last_;
    limit_ = limit;
  }
  last_ = sample.value;
  if (ring != nullptr) samples_.push_back(sample);
}

// Writes the mean rates of the parts of the ring, all of one length; at its end the rate that holds
// then.
void RingRates::Close() {
  if (ring_ == nullptr) return;
  if (static_cast<int64_t>(samples_.size()) <= limit_) {
    thinned_.insert(thinned_.end(), samples_.begin(), samples_.end());
    samples_.clear();
    return;
  }
  const int64_t start = ring_->start.value(), length = ring_->end.value() - start;
  double rate = before_;
  size_t next = 0;
  for (int64_t part = 0; part < limit_; ++part) {
    const int64_t from = start + length * part / limit_, to = start + length * (part + 1) / limit_;
    int64_t at = from;
    double area = 0;
    for (; next < samples_.size() && samples_[next].time.value() < to; ++next) {
      const int64_t time = std::max(samples_[next].time.value(), at);
      area += rate * static_cast<double>(time - at);
      at = time;
      rate = samples_[next].value;
    }
    area += rate * static_cast<double>(to - at);
    sim::CounterSample mean = samples_.front();
    mean.time = Picoseconds(from);
    mean.value = to > from ? area / static_cast<double>(to - from) : rate;
    thinned_.push_back(mean);
  }
  sim::CounterSample after = samples_.back();
  after.time = ring_->end;
  after.value = rate;
  thinned_.push_back(after);
  samples_.clear();
}

const std::vector<sim::CounterSample>& RingRates::Finish() {
  Close();
  ring_ = nullptr;
  return thinned_;
}

}  // namespace tpusim::results
