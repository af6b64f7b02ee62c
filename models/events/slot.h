// An execution slot: an in-order server that is busy for known intervals.
//
// A block claims its slots when it starts; a slot that is still busy from the
// block before would mean that two blocks overlap, which the sequencer forbids.
#ifndef TPUSIM_MODELS_EVENTS_SLOT_H_
#define TPUSIM_MODELS_EVENTS_SLOT_H_

#include <algorithm>

#include "configs/status_macros.h"
#include "configs/units.h"
#include "models/steady/state.h"

namespace tpusim::events {

class Slot {
 public:
  // Busy from `start` for `duration`.
  void Occupy(Picoseconds start, Picoseconds duration) {
    TPUSIM_CHECK(start >= free_at_, "two blocks in one execution slot");
    free_at_ = start + duration;
    busy_ += duration;
  }
  Picoseconds busy() const { return busy_; }
  void Visit(steady::StateVisitor& visitor) {
    visitor.Pending(free_at_);
    visitor.Counter(busy_);
  }

 private:
  Picoseconds free_at_{0};
  Picoseconds busy_{0};
};

}  // namespace tpusim::events

#endif  // TPUSIM_MODELS_EVENTS_SLOT_H_
