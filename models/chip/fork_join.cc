#include "models/chip/fork_join.h"

#include <cstddef>
#include <utility>

#include "configs/status_macros.h"

namespace tpusim::chip {

ForkJoin::ForkJoin(sc_core::sc_module_name name, int32_t tokens)
    : sc_module(name), states_(static_cast<size_t>(tokens)) {}

bool ForkJoin::Fork(const isa::StreamId& stream, const isa::Body& body, int32_t token) {
  Entry& entry = states_[token];
  if (entry.state != State::kFree) return false;
  entry.state = State::kRunning;
  ++taken_;
  for (int i = 0; i < streams.size(); ++i) {
    if (streams[i]->ref().id != stream) continue;
    streams[i]->Enqueue(body, token);
    return true;
  }
  TPUSIM_CHECK(false, "a body was started on a stream that does not exist");
}

void ForkJoin::Finish(int32_t token) {
  Entry& entry = states_[token];
  entry.state = State::kFinished;
  if (entry.waiter == nullptr) return;
  entry.state = State::kFree;
  --taken_;
  std::exchange(entry.waiter, nullptr)->Wake();
}

ForkJoin::Joined ForkJoin::Join(int32_t token, StreamInterface* waiter) {
  Entry& entry = states_[token];
  switch (entry.state) {
    case State::kFinished:
      entry.state = State::kFree;
      --taken_;
      return Joined::kYes;
    case State::kRunning:
      TPUSIM_CHECK(entry.waiter == nullptr, "two streams wait for one token");
      entry.waiter = waiter;
      return Joined::kWait;
    case State::kFree:
      break;
  }
  return Joined::kNeverStarted;
}

void ForkJoin::Visit(steady::StateVisitor& visitor) {
  std::vector<std::pair<int32_t, Entry>> moved;  // with the tokens that they have then
  int64_t left = taken_;
  for (int32_t token = 0; left > 0; ++token) {
    Entry& entry = states_[token];
    if (entry.state == State::kFree) continue;
    --left;
    int32_t name = token;
    visitor.Named(isa::NameKind::kToken, name);
    visitor.Same(static_cast<int64_t>(entry.state));
    visitor.Same(entry.waiter);
    if (name != token) moved.emplace_back(name, std::exchange(entry, {}));
  }
  for (const auto& [token, entry] : moved) states_[token] = entry;
}

}  // namespace tpusim::chip
