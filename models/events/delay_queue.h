// A queue of things that happen after a known delay: a DMA's first byte, a signal's arrival. Any
// number may be pending; SystemC sees one timed notification, for the earliest. What falls on one
// instant happens in the order in which it was pushed.
#ifndef TPUSIM_MODELS_EVENTS_DELAY_QUEUE_H_
#define TPUSIM_MODELS_EVENTS_DELAY_QUEUE_H_

#include <cstdint>
#include <systemc>
#include <vector>

#include "configs/units.h"
#include "models/steady/state.h"

namespace tpusim::events {

class DelayListener {
 public:
  virtual void DelayEnded(uint64_t tag) = 0;
  // Among delays that end together, the order in which they are shown.
  virtual int64_t OrderOf(uint64_t tag) const = 0;
  // Shows what the delay of this tag is for.
  virtual void VisitDelay(uint64_t tag, steady::StateVisitor& visitor) = 0;

 protected:
  ~DelayListener() = default;
};

class DelayQueue : public sc_core::sc_module, public steady::Stateful {
 public:
  DelayQueue(sc_core::sc_module_name name, DelayListener* listener);
  DelayQueue(const DelayQueue&) = delete;

  // `at` must not lie in the past.
  void Push(Picoseconds at, uint64_t tag);
  void Visit(steady::StateVisitor& visitor) override;

 private:
  struct PendingDelay {
    Picoseconds at;
    uint64_t sequence = 0;
    uint64_t tag = 0;
    bool operator<(const PendingDelay& other) const {
      return at != other.at ? at < other.at : sequence < other.sequence;
    }
    bool operator>(const PendingDelay& other) const { return other < *this; }
  };
  void Fire();

  DelayListener* const listener_;
  std::vector<PendingDelay> heap_;
  sc_core::sc_event due_;
  uint64_t sequence_ = 0;
};

}  // namespace tpusim::events

#endif  // TPUSIM_MODELS_EVENTS_DELAY_QUEUE_H_
