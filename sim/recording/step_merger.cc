#include "sim/recording/step_merger.h"

#include <algorithm>

namespace tpusim::sim {

void MergeSpans(Span& span, const Span& later) {
  if (span.merged == 0) {
    span.merged = 1;
    span.busy = span.end - span.start;
  }
  span.merged += SpansIn(later);
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
  spans_.Add(span, limit);
}

void StepMerger::Flush(Recording& recording) {
  for (const Span& span : spans_.entries()) recording.Add(place_, span);
  spans_.Clear();
}

void RateThinner::Extend(Stretch& stretch, const Stretch& later) {
  stretch.area += stretch.rate * static_cast<double>((later.start - stretch.last).value());
  stretch.area += later.area;
  stretch.last = later.last;
  stretch.rate = later.rate;
  stretch.changes += later.changes;
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
  stretches_.Add({.start = time, .last = time, .rate = rate}, limit);
}

void RateThinner::Flush(Recording& recording) {
  const std::vector<Stretch>& stretches = stretches_.entries();
  for (size_t i = 0; i < stretches.size(); ++i) {
    const Stretch& stretch = stretches[i];
    const bool is_last = i + 1 == stretches.size();
    const Picoseconds end = is_last ? stretch.last : stretches[i + 1].start;
    recording.Add(place_, stretch.start, Mean(stretch, end));
    // The rate that holds from here on is no mean.
    if (is_last && stretch.last > stretch.start) recording.Add(place_, stretch.last, stretch.rate);
  }
  stretches_.Clear();
}

}  // namespace tpusim::sim
