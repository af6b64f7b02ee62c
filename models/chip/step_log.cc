#include "models/chip/step_log.h"

#include <algorithm>

namespace tpusim::chip {

void StepLog::Shift(Picoseconds by) {
  for (LogEntry& entry : entries_) {
    entry.at += by;
    entry.iteration.origin += by;
  }
}

void StepLog::DropBefore(size_t entry) {
  unused_ = std::max(unused_, std::min(entry - dropped_, entries_.size()));
  // Not one by one: what is kept is moved.
  if (2 * unused_ < entries_.size()) return;
  entries_.erase(entries_.begin(), entries_.begin() + static_cast<ptrdiff_t>(unused_));
  dropped_ += unused_;
  unused_ = 0;
}

Picoseconds StepLog::ComputeUntil(const LoggedIteration& iteration, Picoseconds from,
                                  Picoseconds now) const {
  const int64_t whole = (now - from).value() / iteration.period.value();
  Picoseconds compute = iteration.work.compute * whole;
  from += iteration.period * whole;
  for (size_t i = iteration.begin; i < iteration.end; ++i) {
    const LogEntry& entry = At(i);
    const Picoseconds at = from + (entry.at - iteration.origin);
    if (at >= now) break;
    if (entry.kind == EventKind::kBlockBegan) {
      compute += std::min(entry.compute, now - at);
    } else if (entry.kind == EventKind::kRepeated) {
      const Picoseconds end = at + entry.iteration.period * entry.times;
      compute += ComputeUntil(entry.iteration, at, std::min(now, end));
    }
  }
  return compute;
}

StepLog::Cursor::Cursor(const StepLog& log, const LoggedIteration& iteration, Picoseconds from)
    : log_(log) {
  levels_.push_back({iteration, from, -1, iteration.begin});
}

std::optional<StepLog::Event> StepLog::Cursor::Next(Picoseconds until, bool everything) {
  for (;;) {
    Level& level = levels_.back();
    const LoggedIteration& iteration = level.iteration;
    if (level.next == iteration.end) {
      if (level.left == 0) {
        levels_.pop_back();
        continue;
      }
      if (level.left > 0) --level.left;
      level.from += iteration.period;
      level.next = iteration.begin;
      continue;
    }
    const LogEntry& entry = log_.At(level.next);
    const Picoseconds at = level.from + (entry.at - iteration.origin);
    if (at > until) return std::nullopt;
    ++level.next;
    if (entry.kind != EventKind::kRepeated) {
      return Event{entry.kind, at, Picoseconds(0), 0, StepWork()};
    }
    const LoggedIteration& inner = entry.iteration;
    const int64_t whole =
        everything ? 0 : std::min(entry.times, (until - at).value() / inner.period.value());
    const Picoseconds from = at + inner.period * whole;
    if (whole < entry.times) levels_.push_back({inner, from, entry.times - whole - 1, inner.begin});
    if (whole > 0) {
      return Event{EventKind::kRepeated, from, inner.period * whole, inner.steps * whole,
                   inner.work * whole};
    }
  }
}

}  // namespace tpusim::chip
