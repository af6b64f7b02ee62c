// The synchronisation flags of a device: counters that transfers and signals raise and that streams
// wait on.
//
// A wait takes what it waited for off the counter. Waiters of one flag are served in the order in
// which they came; a flag that is already high enough makes no stream wait.
#ifndef TPUSIM_MODELS_CHIP_SYNC_FLAGS_H_
#define TPUSIM_MODELS_CHIP_SYNC_FLAGS_H_

#include <cstdint>
#include <systemc>
#include <vector>

#include "models/chip/interfaces.h"
#include "models/steady/state.h"

namespace tpusim::chip {

class SyncFlags : public sc_core::sc_module, public FlagsInterface, public steady::Stateful {
 public:
  SyncFlags(sc_core::sc_module_name name, int32_t flags);

  void Raise(int32_t flag, int64_t times) override;
  bool Take(int32_t flag, int64_t count, FlagListener* listener) override;

  int64_t count(int32_t flag) const { return counts_[flag]; }
  void Visit(steady::StateVisitor& visitor) override;

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
