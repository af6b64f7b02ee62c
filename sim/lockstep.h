// Passes over iterations of ring loops that repeat.
//
// A ring of n takes n - 1 steps that are all alike. If nothing disturbs them, all
// devices of the pod step together, and at the end of a step no transfer is under
// way anywhere. Streams stop there, at the gate, until the instant is over. If then
//
//   - no flow is active, and the same streams stand at the gate as at the last
//     stop, in the same loops, one iteration further;
//   - no other stream has done anything since, and the flags that the loops count
//     stand as they stood;
//   - nothing else was or is due (in SystemC's queue of timed events) between the
//     last stop and this one, nor for a while from now on,
//
// then the state of the pod is what it was at the last stop, but for time and the
// iterations that are left, and so is everything that will happen until something
// else is due or a loop comes to its last iteration. That many periods are waited
// for at once, and all books take as many times what they took in the last period.
// So a ring costs its first step, its last and nothing in between, and the result is
// the same to the picosecond.
//
// In company of kernels that move data some flow is always active: then every step
// is executed, as it is beside a straggler, where devices are not in step.
#ifndef TPUSIM_SIM_LOCKSTEP_H_
#define TPUSIM_SIM_LOCKSTEP_H_

#include <cstdint>
#include <optional>
#include <systemc>
#include <utility>
#include <vector>

#include "models/chip/device.h"
#include "models/chip/fluid.h"
#include "models/chip/loop_gate.h"
#include "models/chip/nic.h"
#include "models/chip/stream.h"
#include "models/ici/link.h"
#include "sim/recorder.h"

namespace tpusim::sim {

// What runs in a pod, each module once.
struct LockstepParts {
  chip::Fluid& fluid;
  const std::vector<chip::Device*>& devices;
  const std::vector<ici::Link*>& links;
  const std::vector<chip::Nic*>& nics;
  Recorder& recorder;
};

class Lockstep : public sc_core::sc_module, public chip::LoopGate {
 public:
  Lockstep(sc_core::sc_module_name name, const LockstepParts& parts);

  bool Arrive(chip::Stream& stream, int64_t left) override;

 private:
  struct Waiting {
    chip::Stream* stream = nullptr;
    int64_t left = 0;
  };
  // The pod when everything has come to rest at the gate.
  struct Stop {
    Picoseconds at;
    Picoseconds quiet_until;  // when something else is due
    int64_t fewest_left = 0;  // iterations of a loop
    // Per stream the loop that it is about to enter again, and how many instructions
    // will have been retired when it leaves; of others, how many have been.
    std::vector<std::pair<const isa::Body*, int64_t>> streams;
    std::vector<int64_t> flags;
    flow::Network::Books flows;
    std::vector<chip::Traffic> links, nics;
    Recorder::Mark mark;
  };

  void Decide();
  Stop Look() const;
  static int64_t RepeatableIterations(const Stop& before, const Stop& now);
  void Repeat(const Stop& before, const Stop& now, int64_t times);
  void Resume();  // those who passed over iterations

  const LockstepParts parts_;
  sc_core::sc_event decide_;
  sc_core::sc_event resume_;
  std::vector<Waiting> waiting_;
  std::optional<Stop> last_;
  // Asleep until resume_; who arrives in that instant is none of them.
  std::vector<Waiting> passing_;
  int64_t iterations_ = 0;  // that they pass over
};

}  // namespace tpusim::sim

#endif  // TPUSIM_SIM_LOCKSTEP_H_
