// A recording: spans and samples of the recorded devices, in little memory.
//
// Spans and samples are packed, stored once for all devices that one device
// represents, and once for all periods that repeat (replay_log.h); they become
// whole again while they are read. Readers (RecordingReader) get them in windows of time.
//
// The room answers how a trace is kept in little memory; `Recording` is its entry point. Spans one
// by one were tried and rejected: 32 layers on four devices took gigabytes.
#ifndef TPUSIM_SIM_RECORDING_RECORDING_H_
#define TPUSIM_SIM_RECORDING_RECORDING_H_

#include <compare>
#include <cstdint>
#include <limits>
#include <map>
#include <vector>

#include "configs/units.h"
#include "sim/recording/replay_log.h"
#include "sim/recording/span.h"

namespace tpusim::sim {

class Recording {
 public:
  // A row that shows spans or samples, the same one of one or several devices.
  using Place = uint32_t;
  Place PlaceOf(const std::vector<int32_t>& devices, Track track, int32_t lane);
  Place PlaceOf(const std::vector<int32_t>& devices, Counter counter, int32_t lane);

  // The device, track and lane are those of the place.
  void Add(Place place, const Span& span);
  void Add(Place place, Picoseconds time, double value);
  // Adds a span on one device.
  void Add(const Span& span);
  void Add(const CounterSample& sample);

  struct Mark {
    size_t spans = 0, samples = 0;
  };
  Mark SetMark() { return {spans_.SetMark(), samples_.SetMark()}; }
  // Adds everything since the mark `times` more times. Arrows get numbers of their own, `arrows`
  // further each time.
  void Repeat(const Mark& mark, Picoseconds period, int64_t times, uint64_t arrows);

  // The number of spans that take memory.
  int64_t stored_spans() const { return spans_.stored(); }
  int64_t stored_samples() const { return samples_.stored(); }

  // Returns everything: spans by end time, samples in the order of recording.
  std::vector<Span> Spans() const;
  std::vector<CounterSample> Samples() const;

 private:
  friend class RecordingReader;

  struct SeriesRow {
    std::vector<int32_t> devices;
    int32_t kind = 0;  // Track or Counter
    int32_t lane = 0;
    auto operator<=>(const SeriesRow&) const = default;
  };
  struct PackedSpan {
    int64_t start, duration, bytes;
    int64_t extra;  // arrow that leaves (> 0) or ends (< 0); of merged steps their busy time
    int32_t op;
    int32_t merged;
    int32_t step;  // or -1 - order
    Place place;
    int64_t At() const { return start; }
  };
  struct PackedSample {
    int64_t time;
    double value;
    Place place;
    int64_t At() const { return time; }
  };
  class SeriesRows {
   public:
    Place Find(const SeriesRow& row);
    const SeriesRow& operator[](Place place) const { return rows_[place]; }

   private:
    std::vector<SeriesRow> rows_;
    std::map<SeriesRow, Place> found_;
  };

  // Appends one for every device of its place.
  void Unpack(const PackedSpan& packed, const ReplayShift& shift, std::vector<Span>& spans) const;
  void Unpack(const PackedSample& packed, const ReplayShift& shift,
              std::vector<CounterSample>& samples) const;

  SeriesRows tracks_, counters_;
  ReplayLog<PackedSpan> spans_;
  ReplayLog<PackedSample> samples_;
};

// Reads a recording from its begin to its end, a moderate number of entries at a time.
class RecordingReader {
 public:
  explicit RecordingReader(const Recording& recording, int64_t entries = 1 << 14);

  // Gets the spans that start, and the samples, in the next window. False: there is none.
  bool Next(std::vector<Span>& spans, std::vector<CounterSample>& samples);
  // The end of the last window: a whole nanosecond, or after the last one the end of time.
  Picoseconds until() const { return Picoseconds(until_); }

 private:
  // Reads entries from `from_` until then. False: there are more than the limit.
  bool Read(int64_t until, int64_t limit, std::vector<Span>& spans,
            std::vector<CounterSample>& samples);

  const Recording& recording_;
  const int64_t entries_;
  ReplayLog<Recording::PackedSpan>::LogReader spans_;
  ReplayLog<Recording::PackedSample>::LogReader samples_;
  int64_t from_ = std::numeric_limits<int64_t>::min();
  int64_t until_ = 0;
  int64_t width_ = 1 << 10;  // of the next window, in nanoseconds
  int64_t left_ = 0;         // entries still to be read
};

}  // namespace tpusim::sim

#endif  // TPUSIM_SIM_RECORDING_RECORDING_H_
