// Steady states: when a machine has come back to a state, and what follows from that.
//
// A machine that does the same again and again (a ring that takes n - 1 equal steps, a
// loop over equal layers) reaches a steady state: after every period everything that is
// still to happen is what it was one period earlier, relative to the present. From then on
// each number that describes the machine is linear in the number of periods:
//
//   structure          what waits for what, what is queued: the same
//   moments            a pending arrival, the start of an open interval: later by one
//                      period, if it belongs to what repeats; the same moment, if it does
//                      not (a long transfer beside a ring)
//   remainders         passes left of a loop, bytes left of a long transfer: less by what
//                      one period takes
//   counters           bytes carried, time busy: more by what one period adds
//   names              of operations, tokens, flags: the same, or in a loop whose iterations
//                      have their own (isa/iterations.h) those of later ones, all by as many
//
// So n periods take one addition per number, as long as nothing comes to its end on the
// way: no remainder reaches zero, and no moment that stays where it is is reached. The
// result is exact. (This is state-space analysis as known from synchronous data-flow
// graphs: compare states at one point of the loop, stop at the first that recurs.)
//
// Ends of transfers are rounded to picoseconds. Where many devices that differ are coupled, the
// states after successive passes of a loop can therefore differ by nanoseconds, pass after pass,
// and never recur exactly. With a tolerance two states recur if no moment differs by more than the
// tolerance. A state that is a little late then makes the following ones late by about as much:
// what waits for the last of several transfers is delayed no longer than that transfer is, and
// flows that share a resource delay each other only by what they move while both are under way.
//
// Every module that holds state describes it once, in a function Visit that shows all of
// its numbers to a StateVisitor in a fixed order. The same function serves to read a
// snapshot and to move the module ahead.
//
//   StateVisitor reader = StateVisitor::Read(now);  modules.Visit(reader);
//   Snapshot later = reader.TakeSnapshot();
//   int64_t n = PeriodsAhead(earlier, later);       // 0: the states differ
//   StateVisitor mover = StateVisitor::Move(earlier, later, n);  modules.Visit(mover);
//
// The room answers whether a machine repeats itself, and moves it over the repetitions;
// `FindRecurrence` is its entry point. States that must be equal to the picosecond were not enough:
// coupled devices that differ may never have two (the tolerance above).
#ifndef TPUSIM_MODELS_STEADY_STATE_H_
#define TPUSIM_MODELS_STEADY_STATE_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "configs/units.h"
#include "models/isa/iterations.h"

namespace tpusim::steady {

// The meaning of a number of a state (see above).
enum class NumberKind : uint8_t {
  kSame,
  kRate,       // a double that has to be the same but for its rounding
  kPending,    // a moment at which something will happen; one in the past means nothing
  kBegan,      // a moment in the past that is still referred to
  kLeft,       // a remainder, of what began at the last kBegan before it
  kLeftTime,   // the same, in picoseconds
  kLeftBytes,  // the same, a double
  kSince,      // what has been counted since the last kBegan
  kIteration,  // of a name; -1: it has none
  kCounter,
  kDoubleCounter,
};

// The state of the machine at one moment, at the end of the instant.
struct Snapshot {
  Picoseconds at;
  size_t count = 0;  // of the numbers; there is room for more
  std::vector<NumberKind> kinds;
  std::vector<int64_t> values;  // doubles by their bits
};

// The most periods from `earlier` to `later` that will follow and be like that one, so that
// nothing ends meanwhile; 0 if the states differ. Unlimited if nothing limits them.
inline constexpr int64_t kUnlimited = INT64_MAX;
int64_t PeriodsAhead(const Snapshot& earlier, const Snapshot& later);
// The result of FindRecurrence: PeriodsAhead for states that are nearly the same.
struct Recurrence {
  int64_t periods = 0;
  bool is_exact = true;  // no moment and no remainder differs
};
Recurrence FindRecurrence(const Snapshot& earlier, const Snapshot& later, Picoseconds tolerance);
// Returns how many iterations of a loop with names of its own such a period has.
int64_t IterationsPerPeriod(const Snapshot& earlier, const Snapshot& later);

// Visits the cause of each stream's last wake-up (events/causes.h); causes are not part of the
// state.
class CauseVisitor {
 public:
  virtual ~CauseVisitor() = default;
  virtual void Visit(uint32_t& cause) = 0;
};

class StateVisitor {
 public:
  // `storage` is overwritten. `iterations`: of the loop whose passes are compared; null: they have
  // the same names.
  static StateVisitor Read(Picoseconds now, Snapshot storage = {},
                           const isa::Iterations* iterations = nullptr);
  // Moves modules ahead by `periods` from PeriodsAhead. Both snapshots must outlive the visitor.
  static StateVisitor Move(const Snapshot& earlier, const Snapshot& later, int64_t periods,
                           const isa::Iterations* iterations = nullptr);

  // Makes `causes`, which must outlive the visits, see every cause; null: nothing sees them.
  void ShowCausesTo(CauseVisitor* causes) { causes_ = causes; }
  void Cause(uint32_t& cause) {
    if (causes_ != nullptr) causes_->Visit(cause);
  }

  // Numbers are being written: modules have to arm their timers anew.
  bool moves() const { return later_ != nullptr; }
  // Returns how far time moves.
  Picoseconds by() const { return by_; }
  bool new_names() const { return iterations_ != nullptr; }

  void Same(int64_t value) { Visit(NumberKind::kSame, value); }
  void Same(const void* identity) { Same(std::bit_cast<int64_t>(identity)); }
  template <typename Tag>
  void Same(Quantity<Tag, int64_t> quantity) {
    Same(quantity.value());
  }
  void SameRate(double rate) {
    int64_t bits = std::bit_cast<int64_t>(rate);
    Visit(NumberKind::kRate, bits);
  }
  // Visits a name of something in the program.
  void Named(isa::NameKind kind, int32_t& name) {
    if (iterations_ == nullptr) return Same(name);
    isa::Iterations::Name of = iterations_->Of(kind, name);
    Same(of.which);
    Visit(NumberKind::kIteration, of.iteration);
    name = iterations_->In(kind, of);
  }
  void Iteration(isa::Iteration& in) {
    Same(in.of);
    if (in.of == nullptr) return;
    Visit(in.of == iterations_ ? NumberKind::kIteration : NumberKind::kSame, in.number);
  }
  // Visits a moment and returns whether it has moved along.
  bool Pending(Picoseconds& at) { return Moment(NumberKind::kPending, at); }
  bool Began(Picoseconds& at) { return Moment(NumberKind::kBegan, at); }
  // Visits a remainder of what began at the moment of the last Began.
  void Left(int64_t& left) { Visit(NumberKind::kLeft, left); }
  void LeftTime(int64_t& left) { Visit(NumberKind::kLeftTime, left); }
  void Since(int64_t& count) { Visit(NumberKind::kSince, count); }
  void Since(Picoseconds& time) {
    int64_t value = time.value();
    Since(value);
    time = Picoseconds(value);
  }
  void LeftBytes(double& left) { VisitDouble(NumberKind::kLeftBytes, left); }
  void Counter(int64_t& count) { Visit(NumberKind::kCounter, count); }
  void Counter(uint64_t& count) {
    auto value = static_cast<int64_t>(count);
    Visit(NumberKind::kCounter, value);
    count = static_cast<uint64_t>(value);
  }
  void Counter(double& sum) { VisitDouble(NumberKind::kDoubleCounter, sum); }
  template <typename Tag>
  void Counter(Quantity<Tag, int64_t>& quantity) {
    int64_t value = quantity.value();
    Visit(NumberKind::kCounter, value);
    quantity = Quantity<Tag, int64_t>(value);
  }

  // Returns what was read.
  Snapshot TakeSnapshot();
  // Aborts unless a move has written everything that was read.
  void CheckComplete() const;

 private:
  StateVisitor() = default;
  bool Moment(NumberKind kind, Picoseconds& at) {
    int64_t value = at.value();
    Visit(kind, value);
    const bool moved = value != at.value();
    at = Picoseconds(value);
    return moved;
  }
  void VisitDouble(NumberKind kind, double& value) {
    int64_t bits = std::bit_cast<int64_t>(value);
    Visit(kind, bits);
    value = std::bit_cast<double>(bits);
  }
  void Visit(NumberKind kind, int64_t&& value) { Visit(kind, value); }
  // A state has tens of thousands of numbers: reading one has to be cheap.
  void Visit(NumberKind kind, int64_t& value) {
    if (next_value_ == end_) {
      Write(kind, value);
    } else {
      *next_value_++ = value;
      *next_kind_++ = kind;
    }
  }
  // The next number that is moved, or that finds no room in what is read.
  void Write(NumberKind kind, int64_t& value);
  void MakeRoom();

  Snapshot read_;  // larger than what was read so far
  int64_t* next_value_ = nullptr;
  const int64_t* end_ = nullptr;
  NumberKind* next_kind_ = nullptr;
  const isa::Iterations* iterations_ = nullptr;
  CauseVisitor* causes_ = nullptr;
  const Snapshot* earlier_ = nullptr;
  const Snapshot* later_ = nullptr;
  int64_t periods_ = 0;
  bool persists_ = false;  // what the last kBegan speaks of is the same thing in both states
  Picoseconds by_{0};
  size_t next_ = 0;
};

// A module that takes part: every module with a process must, or time cannot be moved.
class Stateful {
 public:
  // Called at the end of an instant.
  virtual void Visit(StateVisitor& visitor) = 0;

 protected:
  ~Stateful() = default;
};

}  // namespace tpusim::steady

#endif  // TPUSIM_MODELS_STEADY_STATE_H_
