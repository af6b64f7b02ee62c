// Moves time over passes of loops that repeat what the pass before them did.
//
// Streams tell when they begin a pass of a loop, be it the steps of a ring or the layers
// of the program. At the end of that instant the complete state of the pod is read
// (steady/state.h) and compared with what it was at the last few passes. If it was the
// same, everything until the next end of a loop, of a long transfer or of anything else
// that does not repeat is known: as many periods as fit are passed at once.
//
// The state is what the modules of the pod show: all that are steady::Stateful, found in
// SystemC's hierarchy. A module that has a process and shows no state is an error of ours,
// as its future would be lost.
//
// Where the passes of a loop have names of their own (isa/iterations.h) the states are compared
// but for these. One period more than those over which time is moved has to fit: in the last
// one memories reach their peaks.
//
// A simulation that has gone on for long (TolerateAfter) takes states for the same whose moments
// differ by a millionth of the period at most: passes over coupled devices that differ may never
// be the same to the picosecond. What that can amount to is added up (tolerated).
//
// Of one loop that many devices run at once, the passes of the first stream that entered
// it are examined. A look costs as much as the pod has state, so looks become rarer in
// loops that find no steady state, and in those that found none when they were last entered.
// What looks at short passes may cost together is limited (look_budget.h).
#ifndef TPUSIM_SIM_FAST_FORWARD_H_
#define TPUSIM_SIM_FAST_FORWARD_H_

#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <systemc>
#include <unordered_map>
#include <vector>

#include "models/chip/loop_listener.h"
#include "models/chip/stream.h"
#include "models/events/causes.h"
#include "models/events/faults.h"
#include "models/steady/state.h"
#include "sim/longest_step.h"
#include "sim/look_budget.h"
#include "sim/recorder.h"

namespace tpusim::sim {

class FastForward : public sc_core::sc_module, public chip::LoopListener {
 public:
  // `pod`: the root of all modules. With `names_matter` (a trace is recorded) every pass of a loop
  // is executed whose operations have other names in each pass. The module stops the simulation if
  // the step would take longer than kLongestStep (longest_step.h).
  FastForward(sc_core::sc_module_name name, sc_core::sc_module& pod, Recorder& recorder,
              const events::Faults& faults, bool names_matter = false,
              events::Causes* causes = nullptr);

  void PassBegins(const chip::Stream& stream, const isa::Loop& loop) override;
  void LoopEnds(const chip::Stream& stream, const isa::Loop& loop) override;

  // Tolerates states that are nearly the same once `faults` has counted so many events; at first
  // never.
  void TolerateAfter(int64_t events) { exact_events_ = events; }
  // A bound on the error of the step time: ten millionths of all time that was passed over between
  // states that were not exactly the same. Zero: the step time is exact.
  Picoseconds tolerated() const { return tolerated_; }

  // Returns how often time was moved.
  int64_t moves() const { return moves_; }
  // The passes that would have made the step too long, if the simulation was stopped for them.
  const std::optional<PassesAhead>& ahead() const { return ahead_; }

 private:
  // The pod at the begin of a pass.
  struct Seen {
    int64_t executed = 0;  // instructions
    steady::Snapshot state;
    Recorder::Mark mark;
    std::shared_ptr<events::Causes::Marks> causes;  // null: they are not kept
  };
  struct WatchedLoop {
    const chip::Stream* stream = nullptr;         // the first that entered it; null: none is in it
    int64_t passes = 0;                           // since then, or since time was moved
    bool due = false;                             // a pass has begun in this instant
    int64_t entered = 0;                          // since time was last moved over its passes
    bool covered = false;                         // looks at all its passes are
    int64_t begun_at = 0;                         // instructions when the last pass began
    const isa::Iterations* iterations = nullptr;  // null: all passes have the same
    std::deque<std::shared_ptr<Seen>> seen;       // the latest first
  };

  void end_of_elaboration() override;
  void Collect(const sc_core::sc_object& object);
  WatchedLoop& Find(const isa::Loop& loop);
  void End(WatchedLoop& loop);
  void Look();
  std::shared_ptr<Seen> See(const isa::Iterations* iterations);
  void Visit(steady::StateVisitor& visitor);
  // Moves time if the state recurs; returns whether it has.
  bool Move(WatchedLoop& loop, const Seen& now);
  void Forget(std::shared_ptr<Seen>& seen);
  void ForgetAll(WatchedLoop& loop);
  void ForgetLoops();

  sc_core::sc_module& pod_;
  Recorder& recorder_;
  const events::Faults& faults_;
  const bool names_matter_;
  events::Causes* const causes_;
  int64_t exact_events_ = std::numeric_limits<int64_t>::max();
  Picoseconds tolerated_{0};
  std::vector<steady::Stateful*> modules_;
  sc_core::sc_event look_;
  std::unordered_map<const void*, WatchedLoop> loops_;  // looked up, never iterated over
  std::vector<WatchedLoop*> begun_;                     // that some stream is in
  std::vector<WatchedLoop*> due_;                       // in the order in which they were told
  int64_t remembered_ = 0;                       // by all loops
  int64_t moves_ = 0;
  LookBudget budget_;
  std::optional<PassesAhead> ahead_;
  std::vector<steady::Snapshot> spare_;  // memory of states no longer needed
};

}  // namespace tpusim::sim

#endif  // TPUSIM_SIM_FAST_FORWARD_H_
