// Where a stream asks whether it must execute the next iteration of a loop.
//
// The rings of collectives are loops of a few transfers and waits. When everything
// that runs has come back to where it was an iteration ago, whoever sees the whole
// pod can let all of its streams pass over iterations at once (sim/lockstep.h).
#ifndef TPUSIM_MODELS_CHIP_LOOP_GATE_H_
#define TPUSIM_MODELS_CHIP_LOOP_GATE_H_

#include <cstdint>

namespace tpusim::chip {

class Stream;

class LoopGate {
 public:
  // The stream is about to begin an iteration, of which `left` are to come. False:
  // go on. True: sleep; the gate calls Stream::PassIterations in the same instant
  // or later.
  virtual bool Arrive(Stream& stream, int64_t left) = 0;

 protected:
  ~LoopGate() = default;
};

}  // namespace tpusim::chip

#endif  // TPUSIM_MODELS_CHIP_LOOP_GATE_H_
