// The queue of streams that run in the next delta cycle.
//
// A pod has thousands of streams, of which a few run at a time. SystemC sees one process and one
// notification for all of them. They run in the order in which SystemC would run processes of their
// own: what was released last runs first.
#ifndef TPUSIM_MODELS_EVENTS_RUN_QUEUE_H_
#define TPUSIM_MODELS_EVENTS_RUN_QUEUE_H_

#include <systemc>
#include <vector>

#include "models/steady/state.h"

namespace tpusim::events {

class Runnable {
 public:
  virtual void Run() = 0;

 protected:
  ~Runnable() = default;
};

class RunQueue : public sc_core::sc_module, public steady::Stateful {
 public:
  explicit RunQueue(sc_core::sc_module_name name);
  RunQueue(const RunQueue&) = delete;

  // It must not be there already.
  void Push(Runnable* runnable) {
    if (next_.empty()) due_.notify(sc_core::SC_ZERO_TIME);
    next_.push_back(runnable);
  }
  // Visits nothing: at the end of an instant nothing is left to run.
  void Visit(steady::StateVisitor& visitor) override;

 private:
  void Fire();

  std::vector<Runnable*> next_, running_;
  sc_core::sc_event due_;
};

}  // namespace tpusim::events

#endif  // TPUSIM_MODELS_EVENTS_RUN_QUEUE_H_
