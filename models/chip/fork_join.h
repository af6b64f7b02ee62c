// Forks and joins of the streams of a device: which token has been started, and which is
// done. A token names one execution of a body from its Start to its Done.
#ifndef TPUSIM_MODELS_CHIP_FORK_JOIN_H_
#define TPUSIM_MODELS_CHIP_FORK_JOIN_H_

#include <cstdint>
#include <systemc>
#include <vector>

#include "models/chip/interfaces.h"
#include "models/steady/state.h"

namespace tpusim::chip {

class ForkJoin : public sc_core::sc_module, public ForkJoinInterface, public steady::Stateful {
 public:
  explicit ForkJoin(sc_core::sc_module_name name);

  // every stream of the device
  sc_core::sc_port<StreamInterface, 0> streams{"streams"};

  bool Fork(const isa::StreamId& stream, const isa::Body& body, int32_t token,
            const isa::Iteration& in) override;
  void Finish(int32_t token) override;
  Joined Join(int32_t token, StreamInterface* waiter) override;
  void Visit(steady::StateVisitor& visitor) override;

 private:
  struct Taken {
    int32_t token = 0;
    bool finished = false;
    StreamInterface* waiter = nullptr;
  };
  // Finds the token, or its place in the order.
  std::vector<Taken>::iterator Find(int32_t token);
  bool IsTaken(std::vector<Taken>::iterator at, int32_t token) const {
    return at != taken_.end() && at->token == token;
  }

  std::vector<Taken> taken_;  // tokens that are not free, in increasing order: a few
};

}  // namespace tpusim::chip

#endif  // TPUSIM_MODELS_CHIP_FORK_JOIN_H_
