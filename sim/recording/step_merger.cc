#include "sim/recording/step_merger.h"

#include <algorithm>

namespace tpusim::sim {

namespace {

// Makes one span of two; `later` was recorded after `span`.
void Merge(Span& span, const Span& later) {
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

}  // namespace

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
    Merge(spans_.back(), span);
    return;
  }
  spans_.push_back(span);
  if (static_cast<int64_t>(spans_.size()) <= limit) return;
  size_t kept = 0;
  for (size_t i = 0; i < spans_.size(); i += 2) {
    Span merged = spans_[i];
    if (i + 1 < spans_.size()) Merge(merged, spans_[i + 1]);
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

void RateThinner::Extend(Piece& piece, Picoseconds time, double rate) {
  piece.area += piece.rate * static_cast<double>((time - piece.last).value());
  piece.last = time;
  piece.rate = rate;
}

double RateThinner::Mean(const Piece& piece, Picoseconds end) {
  if (piece.changes == 1 || end == piece.start) return piece.rate;
  const double area = piece.area + piece.rate * static_cast<double>((end - piece.last).value());
  return area / static_cast<double>((end - piece.start).value());
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
  if (!pieces_.empty() && pieces_.back().changes < factor_) {
    Extend(pieces_.back(), time, rate);
    ++pieces_.back().changes;
    return;
  }
  pieces_.push_back({.start = time, .last = time, .rate = rate});
  if (static_cast<int64_t>(pieces_.size()) <= limit) return;
  size_t kept = 0;
  for (size_t i = 0; i < pieces_.size(); i += 2) {
    Piece merged = pieces_[i];
    if (i + 1 < pieces_.size()) {
      const Piece& later = pieces_[i + 1];
      Extend(merged, later.start, later.rate);
      merged.area += later.area;
      merged.last = later.last;
      merged.rate = later.rate;
      merged.changes += later.changes;
    }
    pieces_[kept++] = merged;
  }
  pieces_.resize(kept);
  factor_ *= 2;
}

void RateThinner::Flush(Recording& recording) {
  for (size_t i = 0; i < pieces_.size(); ++i) {
    const Piece& piece = pieces_[i];
    const bool is_last = i + 1 == pieces_.size();
    const Picoseconds end = is_last ? piece.last : pieces_[i + 1].start;
    recording.Add(place_, piece.start, Mean(piece, end));
    // The rate that holds from here on is no mean.
    if (is_last && piece.last > piece.start) recording.Add(place_, piece.last, piece.rate);
  }
  pieces_.clear();
  factor_ = 1;
}

}  // namespace tpusim::sim
