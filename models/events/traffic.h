// Bytes that have entered and left a wire.
#ifndef TPUSIM_MODELS_EVENTS_TRAFFIC_H_
#define TPUSIM_MODELS_EVENTS_TRAFFIC_H_

#include "configs/units.h"
#include "models/steady/state.h"

namespace tpusim::events {

struct Traffic {
  Bytes sent{0};
  Bytes received{0};

  void Visit(steady::StateVisitor& visitor) {
    visitor.Counter(sent);
    visitor.Counter(received);
  }
};

}  // namespace tpusim::events

#endif  // TPUSIM_MODELS_EVENTS_TRAFFIC_H_
