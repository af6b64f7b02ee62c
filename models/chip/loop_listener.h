// Is told when a stream begins a pass of a loop, or an operation with which an iteration of
// an unrolled one may begin.
//
// Whether the machine has reached a steady state shows where loops begin anew
// (sim/fast_forward.h). The stream goes on by itself.
#ifndef TPUSIM_MODELS_CHIP_LOOP_LISTENER_H_
#define TPUSIM_MODELS_CHIP_LOOP_LISTENER_H_

#include <cstdint>

#include "models/isa/program.h"

namespace tpusim::chip {

class Stream;

class LoopListener {
 public:
  virtual void PassBegins(const Stream& stream, const isa::Body& loop) = 0;
  virtual void LoopEnds(const Stream& stream, const isa::Body& loop) = 0;
  // On the main stream.
  virtual void OperationBegins(const Stream& stream, int32_t op) = 0;

 protected:
  ~LoopListener() = default;
};

}  // namespace tpusim::chip

#endif  // TPUSIM_MODELS_CHIP_LOOP_LISTENER_H_
