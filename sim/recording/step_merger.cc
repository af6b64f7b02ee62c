#include "sim/recording/step_merger.h"

#include <algorithm>

namespace tpusim::sim {

void MergeSpans(Span& span, const Span& later) {
  if (span.merged == 0) {
    span.merged = 1;
    span.busy = span.end - span.start;
  }
  span.merged += std::max<int64_t>(later.merged, 1);
  span.busy += later.merged > 0 ? later.busy : later.end - later.start;
  span.bytes += later.bytes;
  span.start = std::min(span.start, later.start);
  span.end = std::max(span.end, later.end);
  span.step = std::min(span.step, later.step);
}

void StepMerger::Add(Recording& recording, int64_t limit, int64_t run, const Span& span) {
  if (limit == 0) {
    recording.Add(place_, span);
    return;
  }
  if (span.op != op_ || run != run_) {
    Flush(recording);
    op_ = span.op;
    run_ = run;
  }
  if (!spans_.empty() && std::max<int64_t>(spans_.back().merged, 1) < factor_) {
    MergeSpans(spans_.back(), span);
    return;
  }
  spans_.push_back(span);
  if (static_cast<int64_t>(spans_.size()) <= limit) return;
  size_t kept = 0;
  for (size_t i = 0; i < spans_.size(); i += 2) {
    Span merged = spans_[i];
    if (i + 1 < spans_.size()) MergeSpans(merged, spans_[i + 1]);
    spans_[kept++] = merged;
  }
  spans_.resize(kept);
  factor_ *= 2;
}

void StepMerger::Flush(Recording& recording) {
  for (const Span& span : spans_) recording.Add(place_, span);
  spans_.clear();
  factor_ = 1;
}

void RateThinner::Extend(Stretch& stretch, Picoseconds time, double rate) {
  stretch.area += stretch.rate * static_cast<double>((time - stretch.last).value());
  stretch.last = time;
  stretch.rate = rate;
}

double RateThinner::Mean(const Stretch& stretch, Picoseconds end) {
  if (stretch.changes == 1 || end == stretch.start) return stretch.rate;
  const double area =
      stretch.area + stretch.rate * static_cast<double>((end - stretch.last).value());
  return area / static_cast<double>((end - stretch.start).value());
}

void RateThinner::Add(Recording& recording, int64_t limit, int64_t run, Picoseconds time,
                      double rate) {
  if (limit == 0) {
    recording.Add(place_, time, rate);
    return;
  }
  if (run != run_) {
    Flush(recording);
    run_ = run;
  }
  if (!stretches_.empty() && stretches_.back().changes < factor_) {
    Extend(stretches_.back(), time, rate);
    ++stretches_.back().changes;
    return;
  }
  stretches_.push_back({.start = time, .last = time, .rate = rate});
  if (static_cast<int64_t>(stretches_.size()) <= limit) return;
  size_t kept = 0;
  for (size_t i = 0; i < stretches_.size(); i += 2) {
    Stretch merged = stretches_[i];
    if (i + 1 < stretches_.size()) {
      const Stretch& later = stretches_[i + 1];
      Extend(merged, later.start, later.rate);
      merged.area += later.area;
      merged.last = later.last;
      merged.rate = later.rate;
      merged.changes += later.changes;
    }
    stretches_[kept++] = merged;
  }
  stretches_.resize(kept);
  factor_ *= 2;
}

void RateThinner::Flush(Recording& recording) {
  for (size_t i = 0; i < stretches_.size(); ++i) {
    const Stretch& stretch = stretches_[i];
    const bool is_last = i + 1 == stretches_.size();
    const Picoseconds end = is_last ? stretch.last : stretches_[i + 1].start;
    recording.Add(place_, stretch.start, Mean(stretch, end));
    // The rate that holds from here on is no mean.
    if (is_last && stretch.last > stretch.start) recording.Add(place_, stretch.last, stretch.rate);
  }
  stretches_.clear();
  factor_ = 1;
}

}  // namespace tpusim::sim
