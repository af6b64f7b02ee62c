#include "models/chip/fork_join.h"

#include <algorithm>

#include "configs/status_macros.h"

namespace tpusim::chip {

ForkJoin::ForkJoin(sc_core::sc_module_name name) : sc_module(name) {}

std::vector<ForkJoin::Taken>::iterator ForkJoin::Find(int32_t token) {
  return std::ranges::lower_bound(taken_, token, {}, &Taken::token);
}

bool ForkJoin::Fork(const isa::StreamId& stream, const isa::Body& body, int32_t token,
                    const isa::Iteration& in) {
  const auto at = Find(token);
  if (IsTaken(at, token)) return false;
  taken_.insert(at, {.token = token});
  for (int i = 0; i < streams.size(); ++i) {
    if (streams[i]->ref().id != stream) continue;
    streams[i]->Enqueue(body, token, in);
    return true;
  }
  TPUSIM_CHECK(false, "a body was started on a stream that does not exist");
}

void ForkJoin::Finish(int32_t token) {
  const auto at = Find(token);
  TPUSIM_CHECK(IsTaken(at, token), "a body ends that was never started");
  at->finished = true;
  StreamInterface* waiter = at->waiter;
  if (waiter == nullptr) return;
  taken_.erase(at);
  waiter->Wake();
}

ForkJoin::Joined ForkJoin::Join(int32_t token, StreamInterface* waiter) {
  const auto at = Find(token);
  if (!IsTaken(at, token)) return Joined::kNeverStarted;
  if (at->finished) {
    taken_.erase(at);
    return Joined::kYes;
  }
  TPUSIM_CHECK(at->waiter == nullptr, "two streams wait for one token");
  at->waiter = waiter;
  for (int i = 0; i < streams.size(); ++i) streams[i]->Awaited(token);
  return Joined::kWait;
}

void ForkJoin::Visit(steady::StateVisitor& visitor) {
  visitor.Same(static_cast<int64_t>(taken_.size()));
  for (Taken& taken : taken_) {
    visitor.Named(isa::NameKind::kToken, taken.token);
    visitor.Same(taken.finished);
    visitor.Same(taken.waiter);
  }
  if (visitor.moves()) std::ranges::sort(taken_, {}, &Taken::token);
}

}  // namespace tpusim::chip
