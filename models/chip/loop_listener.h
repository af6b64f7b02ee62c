// Hears when a stream begins a pass of a loop, and when it leaves the loop.
//
// Whether the machine has reached a steady state shows where loops begin anew
// (sim/fast_forward.h). The stream goes on by itself.
#ifndef TPUSIM_MODELS_CHIP_LOOP_LISTENER_H_
#define TPUSIM_MODELS_CHIP_LOOP_LISTENER_H_

#include "models/isa/program.h"

namespace tpusim::chip {

class Stream;

class LoopListener {
 public:
  virtual void PassBegins(const Stream& stream, const isa::Loop& loop) = 0;
  virtual void LoopEnds(const Stream& stream, const isa::Loop& loop) = 0;

 protected:
  ~LoopListener() = default;
};

}  // namespace tpusim::chip

#endif  // TPUSIM_MODELS_CHIP_LOOP_LISTENER_H_
