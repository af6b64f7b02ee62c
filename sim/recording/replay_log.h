// A log in which parts repeat, and only what was new is stored.
//
// Entries are added one by one. When time is moved over periods that repeat
// (fast_forward.h) the log is told that everything since a mark happened again,
// so many times: it keeps one line that says so, also if that part repeats
// others. Thus a loop over layers costs the memory of the layers executed.
//
// Readers ask for the entries of a window of time. They get them in the order in
// which they would have been added had everything happened one by one.
//
// T has `int64_t At() const`, the time in picoseconds at which a window finds it.
#ifndef TPUSIM_SIM_RECORDING_REPLAY_LOG_H_
#define TPUSIM_SIM_RECORDING_REPLAY_LOG_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "configs/status_macros.h"

namespace tpusim::sim {

// The amounts that a repetition adds to times and to the numbers of arrows.
struct ReplayShift {
  int64_t time = 0;
  uint64_t arrows = 0;
};

template <typename T>
class ReplayLog {
 public:
  void Add(const T& entry) {
    if (closed_ || parts_.back().last - parts_.back().first == kPartEntries) {
      parts_.push_back({.first = entries_.size(), .last = entries_.size()});
      closed_ = false;
    }
    entries_.push_back(entry);
    Stretch& part = parts_.back();
    part.last = entries_.size();
    part.earliest = std::min(part.earliest, entry.At());
    part.latest = std::max(part.latest, entry.At());
    ++part.size;
    ++size_;
  }

  // A place between what was added before and what comes.
  size_t SetMark() {
    closed_ = true;
    return parts_.size();
  }

  // Everything since the mark happens `times` more times, `period` apart.
  void Repeat(size_t mark, int64_t period, int64_t times, uint64_t arrows) {
    TPUSIM_CHECK(period > 0 && times > 0, "a repetition without duration");
    Stretch repeat{
        .first = mark, .last = parts_.size(), .period = period, .times = times, .arrows = arrows};
    for (size_t p = mark; p < parts_.size(); ++p) {
      repeat.earliest = std::min(repeat.earliest, parts_[p].earliest);
      repeat.latest = std::max(repeat.latest, parts_[p].latest);
      repeat.size += parts_[p].size;
    }
    if (repeat.size == 0) return;
    repeat.earliest += period;
    repeat.latest += period * times;
    repeat.size *= times;
    size_ += repeat.size;
    parts_.push_back(repeat);
    closed_ = true;
  }

  // Entries with all repetitions, and those that take memory.
  int64_t size() const { return size_; }
  int64_t stored() const { return static_cast<int64_t>(entries_.size()); }

  // Reads windows one after the other.
  class LogReader {
   public:
    explicit LogReader(const ReplayLog& log) : log_(log), earliest_from_(log.parts_.size()) {
      int64_t earliest = std::numeric_limits<int64_t>::max();
      for (size_t p = log.parts_.size(); p-- > 0;) {
        earliest = std::min(earliest, log.parts_[p].earliest);
        earliest_from_[p] = earliest;
      }
    }

    // Calls found(entry, shift) for all entries in [from, until) as long as it returns
    // true. `from` never decreases.
    template <typename Found>
    void Read(int64_t from, int64_t until, const Found& found) {
      const std::vector<Stretch>& parts = log_.parts_;
      while (first_ < parts.size() && parts[first_].latest < from) ++first_;
      for (size_t p = first_; p < parts.size() && earliest_from_[p] < until; ++p) {
        if (!log_.ReadPart(p, {}, from, until, found)) return;
      }
    }

   private:
    const ReplayLog& log_;
    size_t first_ = 0;                    // all before it is over
    std::vector<int64_t> earliest_from_;  // of a part and all after it
  };

 private:
  // Windows skip what lies outside in parts of this size.
  static constexpr size_t kPartEntries = 256;

  // Entries [first, last) as they were added, or the parts [first, last) repeated.
  struct Stretch {
    size_t first = 0, last = 0;
    int64_t period = 0, times = 0;  // times = 0: entries
    uint64_t arrows = 0;            // in one period
    int64_t earliest = std::numeric_limits<int64_t>::max();
    int64_t latest = std::numeric_limits<int64_t>::min();
    int64_t size = 0;  // entries with all repetitions
  };

  template <typename Found>
  bool ReadPart(size_t index, ReplayShift shift, int64_t from, int64_t until,
                const Found& found) const {
    const Stretch& part = parts_[index];
    if (part.size == 0 || part.latest + shift.time < from || part.earliest + shift.time >= until) {
      return true;
    }
    if (part.times == 0) {
      for (size_t e = part.first; e < part.last; ++e) {
        const int64_t at = entries_[e].At() + shift.time;
        if (at >= from && at < until && !found(entries_[e], shift)) return false;
      }
      return true;
    }
    // Of the repetitions from the first that reaches into the window.
    const int64_t earliest = part.earliest - part.period + shift.time;
    const int64_t latest = part.latest - part.period * part.times + shift.time;
    int64_t i = 1;
    if (from > latest) i = std::max(i, (from - latest + part.period - 1) / part.period);
    for (; i <= part.times && earliest + part.period * i < until; ++i) {
      const ReplayShift later{shift.time + part.period * i,
                              shift.arrows + part.arrows * static_cast<uint64_t>(i)};
      for (size_t p = part.first; p < part.last; ++p) {
        if (!ReadPart(p, later, from, until, found)) return false;
      }
    }
    return true;
  }

  std::vector<T> entries_;
  std::vector<Stretch> parts_;
  bool closed_ = true;  // the last part takes no more entries
  int64_t size_ = 0;
};

}  // namespace tpusim::sim

#endif  // TPUSIM_SIM_RECORDING_REPLAY_LOG_H_
