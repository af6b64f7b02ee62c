// What has gone in and come out at the two ends of a wire.
#ifndef TPUSIM_MODELS_CHIP_TRAFFIC_H_
#define TPUSIM_MODELS_CHIP_TRAFFIC_H_

#include "configs/units.h"

namespace tpusim::chip {

struct Traffic {
  Bytes sent{0};
  Bytes received{0};

  // As if what has happened since `before` had happened `times` more times.
  void Repeat(const Traffic& before, int64_t times) {
    sent += (sent - before.sent) * times;
    received += (received - before.received) * times;
  }
};

}  // namespace tpusim::chip

#endif  // TPUSIM_MODELS_CHIP_TRAFFIC_H_
