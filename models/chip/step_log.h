// A log of the latest steps of a kernel, to be replayed for the steps that repeat them.
//
// An entry is a moment: a block began, a step or a transfer ended. Where steps were not
// executed because they repeated others, one entry is there for all of them and points at
// the entries that they repeated, which come before it.
//
// A LoggedIteration names the entries of one pass through what repeats: those after its
// origin, up to and with the end of its last step. A Cursor walks through
// iteration after iteration as if each had been logged.
#ifndef TPUSIM_MODELS_CHIP_STEP_LOG_H_
#define TPUSIM_MODELS_CHIP_STEP_LOG_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "configs/units.h"
#include "models/timing/memory_bytes.h"

namespace tpusim::chip {

// The work of steps: busy time of units, and bytes.
struct StepWork {
  Picoseconds mxu{0}, vpu{0}, xlu{0};
  Picoseconds compute{0};     // the longer of the first two, block by block
  timing::MemoryBytes moved;  // by transfers that ended
  Picoseconds steps{0};       // from their begins to their ends

  friend StepWork operator+(const StepWork& a, const StepWork& b) {
    return {a.mxu + b.mxu,         a.vpu + b.vpu,     a.xlu + b.xlu,
            a.compute + b.compute, a.moved + b.moved, a.steps + b.steps};
  }
  friend StepWork operator-(const StepWork& a, const StepWork& b) { return a + b * -1; }
  friend StepWork operator*(const StepWork& a, int64_t n) {
    return {a.mxu * n, a.vpu * n, a.xlu * n, a.compute * n, a.moved * n, a.steps * n};
  }
};

class StepLog {
 public:
  enum class EventKind { kBlockBegan, kStepEnded, kTransferEnded, kRepeated };
  struct LoggedIteration {
    size_t begin = 0, end = 0;  // entries
    Picoseconds origin;         // where the first begins
    Picoseconds period;
    int64_t steps = 0;
    StepWork work;  // of each
  };
  struct Event {
    EventKind kind = EventKind::kStepEnded;
    Picoseconds at;
    // kRepeated: the time up to `at`.
    Picoseconds duration{0};
    int64_t steps = 0;
    StepWork work;
  };

  // Entries are counted from the first ever, also those that have been dropped.
  size_t size() const { return dropped_ + entries_.size(); }
  size_t kept() const { return entries_.size() - unused_; }
  void DropBefore(size_t entry);
  // Moves all entries to later times.
  void Shift(Picoseconds by);
  void Add(EventKind kind, Picoseconds at, Picoseconds compute = Picoseconds(0)) {
    entries_.push_back({kind, at, compute, 0, {}});
  }
  // Adds one entry for `times` iterations like this one, from `at` on.
  void AddRepeated(Picoseconds at, const LoggedIteration& iteration, int64_t times) {
    entries_.push_back({EventKind::kRepeated, at, Picoseconds(0), times, iteration});
  }

  // Compute of the iterations that follow each other from `from` on, until `now`.
  Picoseconds ComputeUntil(const LoggedIteration& iteration, Picoseconds from,
                           Picoseconds now) const;

  // Walks through endless iterations, the first of which starts at `from`.
  class Cursor {
   public:
    Cursor(const StepLog& log, const LoggedIteration& iteration, Picoseconds from);
    // The next event if it is not after `until`. Repeated iterations inside that
    // end by then are one event, unless everything is asked for.
    std::optional<Event> Next(Picoseconds until, bool everything);

   private:
    struct Level {
      LoggedIteration iteration;
      Picoseconds from;  // of the running one
      int64_t left = 0;  // iterations after it; -1 = endless
      size_t next = 0;   // entry
    };
    const StepLog& log_;
    std::vector<Level> levels_;
  };

 private:
  struct LogEntry {
    EventKind kind = EventKind::kStepEnded;
    Picoseconds at;
    Picoseconds compute;
    int64_t times = 0;
    LoggedIteration iteration;
  };
  const LogEntry& At(size_t entry) const { return entries_[entry - dropped_]; }

  std::vector<LogEntry> entries_;
  size_t unused_ = 0;   // of them, the first
  size_t dropped_ = 0;  // before them
};

}  // namespace tpusim::chip

#endif  // TPUSIM_MODELS_CHIP_STEP_LOG_H_
