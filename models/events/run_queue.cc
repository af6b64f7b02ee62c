#include "models/events/run_queue.h"

#include "configs/status_macros.h"

namespace tpusim::events {

RunQueue::RunQueue(sc_core::sc_module_name name) : sc_module(name) {
  SC_HAS_PROCESS(RunQueue);
  SC_METHOD(Fire);
  sensitive << due_;
  dont_initialize();
}

void RunQueue::Fire() {
  // What runs may release others, in the cycle after this one.
  running_.swap(next_);
  for (auto runnable = running_.rbegin(); runnable != running_.rend(); ++runnable) {
    (*runnable)->Run();
  }
  running_.clear();
}

void RunQueue::Visit(steady::StateVisitor&) {
  TPUSIM_CHECK(next_.empty(), "the instant is not over: something has yet to run");
}

}  // namespace tpusim::events
