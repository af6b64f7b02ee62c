// Keeps recordings of large kernels small: neighbouring grid steps become one span.
//
// While an operation runs, each of its rows (matrix slots, vector slots, a DMA channel)
// gets at most `limit` spans. The first ones are as they were; when there are too many,
// every two neighbours are merged and from then on twice as many go into one. A merged
// span reaches from the start of its first to the end of its last; how many it was made
// of, their bytes and the sum of their lengths are kept, so sums over rows do not change.
//
// Rates of bandwidth change with every step. They are thinned in the same way, to at most
// twice as many, where a merged sample is the mean over its time: integrals stay.
//
// What was merged becomes known to the recording at the next flush. An operation that is
// under way at a flush begins anew.
#ifndef TPUSIM_SIM_RECORDING_STEP_MERGER_H_
#define TPUSIM_SIM_RECORDING_STEP_MERGER_H_

#include <algorithm>
#include <cstdint>

#include "sim/recording/recording.h"
#include "sim/recording/thinned.h"

namespace tpusim::sim {

// Makes one span of two of a row; `later` was recorded after `span`.
void MergeSpans(Span& span, const Span& later);
inline int64_t SpansIn(const Span& span) { return std::max<int64_t>(span.merged, 1); }
using ThinnedSpans = Thinned<Span, SpansIn, MergeSpans>;

// The spans of one row.
class StepMerger {
 public:
  explicit StepMerger(Recording::Place place) : place_(place) {}

  // `run` tells executions of an operation apart. A limit of 0 merges nothing.
  void Add(Recording& recording, int64_t limit, int64_t run, const Span& span);
  void Flush(Recording& recording);

 private:
  Recording::Place place_;
  int32_t op_ = -1;
  int64_t run_ = 0;
  ThinnedSpans spans_;  // of the operation
};

// The rates of one counter.
class RateThinner {
 public:
  explicit RateThinner(Recording::Place place) : place_(place) {}

  // The rate from `time` on, at which no other sample comes earlier. A limit of 0 thins nothing.
  void Add(Recording& recording, int64_t limit, int64_t run, Picoseconds time, double rate);
  void Flush(Recording& recording);

 private:
  // Time with one mean rate, made of `changes` that follow each other.
  struct Stretch {
    Picoseconds start;
    Picoseconds last;  // change in it
    double area = 0;   // up to then
    double rate = 0;   // from then on
    int64_t changes = 1;
  };
  static int64_t ChangesIn(const Stretch& stretch) { return stretch.changes; }
  static void Extend(Stretch& stretch, const Stretch& later);
  // Returns the mean of a stretch that ends at `end`.
  static double Mean(const Stretch& stretch, Picoseconds end);

  Recording::Place place_;
  int64_t run_ = 0;
  Thinned<Stretch, ChangesIn, Extend> stretches_;
};

}  // namespace tpusim::sim

#endif  // TPUSIM_SIM_RECORDING_STEP_MERGER_H_
