#include "models/chip/sync_flags.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace tpusim::chip {

SyncFlags::SyncFlags(sc_core::sc_module_name name, int32_t flags)
    : sc_module(name), counts_(static_cast<size_t>(flags), 0) {}

void SyncFlags::Raise(int32_t flag, int64_t times) {
  for (int64_t n = 0; n < times; ++n) RaiseOnce(flag);
}

void SyncFlags::RaiseOnce(int32_t flag) {
  if (counts_[flag]++ == 0) ++raised_;
  for (auto waiter = waiters_.begin(); waiter != waiters_.end(); ++waiter) {
    if (waiter->flag != flag) continue;
    // Only the oldest waiter may take: a later, smaller wait must not overtake it.
    if (counts_[flag] < waiter->count) return;
    Lower(flag, waiter->count);
    FlagListener* listener = waiter->listener;
    waiters_.erase(waiter);
    listener->FlagReached();
    return;
  }
}

void SyncFlags::Lower(int32_t flag, int64_t count) {
  if (count == 0) return;
  counts_[flag] -= count;
  if (counts_[flag] == 0) --raised_;
}

bool SyncFlags::Take(int32_t flag, int64_t count, FlagListener* listener) {
  bool queued = false;
  for (const Waiter& waiter : waiters_) queued |= waiter.flag == flag;
  if (!queued && counts_[flag] >= count) {
    Lower(flag, count);
    return true;
  }
  waiters_.push_back({flag, count, listener});
  return false;
}

void SyncFlags::Visit(steady::StateVisitor& visitor) {
  std::vector<std::pair<int32_t, int64_t>> moved;  // counts by the flags that have them then
  int64_t left = raised_;
  for (int32_t flag = 0; left > 0; ++flag) {
    if (counts_[flag] == 0) continue;
    --left;
    int32_t name = flag;
    visitor.Named(isa::NameKind::kFlag, name);
    visitor.Same(counts_[flag]);
    if (name != flag) moved.emplace_back(name, std::exchange(counts_[flag], 0));
  }
  for (const auto& [flag, count] : moved) counts_[flag] = count;
  // Waiters of one flag are served in their order; those of different flags have none.
  std::vector<Waiter> waiters = waiters_;
  std::stable_sort(waiters.begin(), waiters.end(),
                   [](const Waiter& a, const Waiter& b) { return a.flag < b.flag; });
  visitor.Same(static_cast<int64_t>(waiters.size()));
  for (Waiter& waiter : waiters) {
    visitor.Named(isa::NameKind::kFlag, waiter.flag);
    visitor.Same(waiter.count);
    visitor.Same(waiter.listener);
  }
  if (visitor.moves()) waiters_ = std::move(waiters);
}

}  // namespace tpusim::chip
