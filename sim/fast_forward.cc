#include "sim/fast_forward.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <utility>

#include "configs/status_macros.h"
#include "models/events/sim_time.h"

namespace tpusim::sim {
namespace {

// Passes with which one is compared: a steady state may take several.
constexpr size_t kCompared = 4;
// So many passes are examined in any case, and a loop so many times when it is entered.
constexpr int64_t kFirstPasses = 8;
constexpr int64_t kFirstEntries = 8;

// Moments may differ by a millionth of a period and count as the same.
constexpr int64_t kPartsPerPeriod = 1'000'000;
// The bound on the error of the step counts so many tolerances for each period that is passed over:
// where transfers share a resource, a difference between two passes can grow before it fades. In
// random programs (kernels beside ring collectives, tests/sim/fast_forward_test.cc) the step
// differed from the exact one by up to 2.6 tolerances per period.
constexpr int64_t kGrowth = 10;

// A few of the first numbers, then a few at every power of two.
bool IsSampled(int64_t number, int64_t first) {
  const auto n = static_cast<uint64_t>(number);
  return number <= first || n - std::bit_floor(n) <= kCompared;
}

}  // namespace

FastForward::FastForward(sc_core::sc_module_name name, sc_core::sc_module& pod, Recorder& recorder,
                         const events::Faults& faults, bool names_matter, events::Causes* causes)
    : sc_module(name),
      pod_(pod),
      recorder_(recorder),
      faults_(faults),
      names_matter_(names_matter),
      causes_(causes) {
  SC_HAS_PROCESS(FastForward);
  SC_METHOD(Look);
  sensitive << look_;
  dont_initialize();
}

void FastForward::end_of_elaboration() { Collect(pod_); }

void FastForward::Collect(const sc_core::sc_object& object) {
  for (sc_core::sc_object* child : object.get_child_objects()) {
    if (child == this) continue;
    if (auto* stateful = dynamic_cast<steady::Stateful*>(child)) {
      modules_.push_back(stateful);
    } else if (std::strcmp(child->kind(), "sc_method_process") == 0) {
      TPUSIM_CHECK(dynamic_cast<const steady::Stateful*>(&object) != nullptr,
                   fmt::format("{} has a process and shows no state", object.name()));
    }
    Collect(*child);
  }
}

FastForward::WatchedLoop& FastForward::Find(const isa::Loop& loop) {
  // The programs of all devices share iterations.
  if (loop.iterations == nullptr) return loops_[loop.body.get()];
  WatchedLoop& found = loops_[loop.iterations.get()];
  found.iterations = loop.iterations.get();
  return found;
}

void FastForward::PassBegins(const chip::Stream& stream, const isa::Loop& of) {
  if (of.iterations != nullptr && names_matter_) return;
  WatchedLoop& loop = Find(of);
  const int64_t executed = faults_.counted();
  if (loop.stream == nullptr) {
    loop.stream = &stream;
    ++loop.entered;
    loop.begun_at = executed;
    // Of loops over the layers of a program there are few.
    loop.covered = of.iterations != nullptr || budget_.Covers(0, executed);
    begun_.push_back(&loop);
  }
  if (loop.stream != &stream) return;
  const int64_t pass = executed - std::exchange(loop.begun_at, executed);
  if (!IsSampled(++loop.passes, kFirstPasses) || !IsSampled(loop.entered, kFirstEntries) ||
      !(loop.covered || budget_.Covers(pass, executed))) {
    return;
  }
  if (std::exchange(loop.due, true)) return;
  due_.push_back(&loop);
  look_.notify(sc_core::SC_ZERO_TIME);
}

void FastForward::LoopEnds(const chip::Stream& stream, const isa::Loop& of) {
  WatchedLoop& loop = Find(of);
  if (loop.stream == &stream) End(loop);
}

void FastForward::End(WatchedLoop& loop) {
  std::erase(begun_, &loop);
  loop.stream = nullptr;
  loop.passes = 0;
  ForgetAll(loop);
  ForgetLoops();
}

void FastForward::ForgetLoops() {
  if (remembered_ == 0) recorder_.DropMarks();
}

void FastForward::Visit(steady::StateVisitor& visitor) {
  for (steady::Stateful* module : modules_) module->Visit(visitor);
  recorder_.Visit(visitor);
}

void FastForward::Look() {
  // The instant is not over.
  if (sc_core::sc_pending_activity_at_current_time()) {
    look_.notify(sc_core::SC_ZERO_TIME);
    return;
  }
  std::shared_ptr<Seen> plain;  // without iterations
  bool moved = false;
  for (WatchedLoop* loop : std::exchange(due_, {})) {
    loop->due = false;
    if (loop->stream == nullptr) continue;  // it ended in the instant
    // What was seen now is no more after time has moved.
    if (moved) continue;
    std::shared_ptr<Seen> now = loop->iterations == nullptr ? plain : nullptr;
    if (now == nullptr) now = See(loop->iterations);
    if (loop->iterations == nullptr) plain = now;
    moved = Move(*loop, *now);
    if (moved) {
      Forget(now);
      continue;
    }
    loop->seen.push_front(now);
    ++remembered_;
    if (loop->seen.size() <= kCompared) continue;
    Forget(loop->seen.back());
    loop->seen.pop_back();
    --remembered_;
  }
  if (plain != nullptr) Forget(plain);
  ForgetLoops();
}

std::shared_ptr<FastForward::Seen> FastForward::See(const isa::Iterations* iterations) {
  recorder_.Settle(events::Now());
  steady::Snapshot storage;
  if (!spare_.empty()) {
    storage = std::move(spare_.back());
    spare_.pop_back();
  }
  auto reader = steady::StateVisitor::Read(events::Now(), std::move(storage), iterations);
  std::shared_ptr<events::Causes::Marks> causes;
  if (causes_ != nullptr) causes = std::make_shared<events::Causes::Marks>(*causes_);
  reader.ShowCausesTo(causes.get());
  Visit(reader);
  auto seen = std::make_shared<Seen>(
      Seen{faults_.counted(), reader.TakeSnapshot(), recorder_.SetMark(), causes});
  budget_.Spend(seen->state.count);
  return seen;
}

void FastForward::Forget(std::shared_ptr<Seen>& seen) {
  constexpr size_t kSpare = 2 * kCompared;
  if (seen.use_count() == 1 && spare_.size() < kSpare) spare_.push_back(std::move(seen->state));
  seen.reset();
}

void FastForward::ForgetAll(WatchedLoop& loop) {
  remembered_ -= static_cast<int64_t>(loop.seen.size());
  for (std::shared_ptr<Seen>& seen : loop.seen) Forget(seen);
  loop.seen.clear();
}

bool FastForward::Move(WatchedLoop& loop, const Seen& now) {
  for (const std::shared_ptr<Seen>& before : loop.seen) {
    const Picoseconds period = now.state.at - before->state.at;
    const Picoseconds tolerance =
        faults_.counted() < exact_events_ ? Picoseconds(0) : period / kPartsPerPeriod;
    auto [periods, is_exact] = steady::FindRecurrence(before->state, now.state, tolerance);
    if (loop.iterations != nullptr) --periods;
    if (periods <= 0) continue;
    TPUSIM_CHECK(periods != steady::kUnlimited, "a loop whose passes do not become fewer");
    if (periods > (kLongestStep - now.state.at).value() / period.value()) {
      ahead_ = PassesAhead{periods, period};
      sc_core::sc_stop();
      return true;
    }
    const int64_t per_period = steady::IterationsPerPeriod(before->state, now.state);
    std::unique_ptr<steady::CauseVisitor> causes;
    if (causes_ != nullptr) {
      causes = causes_->Repeat(before->causes, now.causes, period, periods, loop.iterations,
                               per_period, is_exact);
      if (causes == nullptr && !causes_->given_up()) continue;
    }
    auto mover = steady::StateVisitor::Move(before->state, now.state, periods, loop.iterations);
    mover.ShowCausesTo(causes.get());
    Visit(mover);
    mover.CheckComplete();
    ++moves_;
    budget_.Save(now.executed - before->executed, periods);
    if (!is_exact) tolerated_ += tolerance * (kGrowth * periods);
    loop.entered = 0;
    if (loop.iterations == nullptr) {
      recorder_.Repeat(before->mark, period, periods);
      ForgetAll(loop);
      loop.passes = 0;
      return true;
    }
    recorder_.Repeat(before->mark, periods, *loop.iterations, per_period);
    // What loops inside have seen has the names of another iteration.
    while (!begun_.empty()) End(*begun_.back());
    return true;
  }
  return false;
}

}  // namespace tpusim::sim
