// The synchronisation flags of a device: counters that transfers and signals
// raise and that streams wait on.
//
// A wait takes what it waited for off the counter. Waiters of one flag are served
// in the order in which they came; a flag that is already high enough lets the
// stream go on at once.
#ifndef TPUSIM_MODELS_CHIP_SYNC_FLAGS_H_
#define TPUSIM_MODELS_CHIP_SYNC_FLAGS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "models/steady/state.h"

namespace tpusim::chip {

class FlagListener {
 public:
  virtual void FlagReached() = 0;

 protected:
  ~FlagListener() = default;
};

class SyncFlags {
 public:
  explicit SyncFlags(int32_t flags) : counts_(static_cast<size_t>(flags), 0) {}

  // Raises by one and lets a waiter go if that is enough; `times` over.
  void Raise(int32_t flag, int64_t times = 1);
  // True: taken, go on. False: the listener will be called when it has been taken.
  bool Take(int32_t flag, int64_t count, FlagListener* listener);

  int64_t count(int32_t flag) const { return counts_[flag]; }
  void Visit(steady::StateVisitor& visitor);

 private:
  void RaiseOnce(int32_t flag);
  void Lower(int32_t flag, int64_t count);
  struct Waiter {
    int32_t flag = 0;
    int64_t count = 0;
    FlagListener* listener = nullptr;
  };
  std::vector<int64_t> counts_;
  int64_t raised_ = 0;           // flags that are not at zero
  std::vector<Waiter> waiters_;  // oldest first; at most one per stream
};

}  // namespace tpusim::chip

#endif  // TPUSIM_MODELS_CHIP_SYNC_FLAGS_H_
