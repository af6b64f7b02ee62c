// Overlap: what runs beside the collectives of a device, and what the device does while nothing
// hides them.
//
// The main stream does one thing at a time: that of the innermost operation whose label is
// open on it. Between two events (a label opens or closes there, a collective begins or
// ends) this stays the same, so the time since the last event belongs to one operation.
// For every collective in flight the part of it in which a compute slot was busy is hidden
// by that operation, and the rest is exposed, because the main stream
//   - waits for this very collective;
//   - waits for another transfer;
//   - executes an operation that keeps no slot busy just then (its windows are on their way,
//     it is being launched).
// Over all operations the first adds up to the hidden time of the collective, the second to
// its exposed time, so nothing is told twice.
//
// In the same way the time of the main stream is told by operation, and the time in which a
// collective of a kind is in flight by kind, and of any kind; several count once.
//
// All of these are sums over the same intervals, so they agree whatever moments are settled. Behind
// a steady state that is not exactly one, or beside a kernel whose steps repeat with another
// period, a slot may have been busy for a little longer than since the last event, or for less than
// nothing: what was told too much before is taken back. A settlement at every mark of a recorder
// (recorder.h) makes what is added between two marks the time between them, also where the
// operations under way are not exactly the same at both.
#ifndef TPUSIM_SIM_OVERLAP_H_
#define TPUSIM_SIM_OVERLAP_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "configs/units.h"
#include "models/isa/program_info.h"
#include "models/steady/state.h"
#include "sim/timeline.h"

namespace tpusim::sim {

// The kinds of a program's collectives, by name.
class CollectiveKinds {
 public:
  explicit CollectiveKinds(const isa::ProgramInfo& info);
  const std::vector<std::string>& names() const { return names_; }
  // Returns the kind of a collective, an index into ProgramInfo::collectives.
  size_t Of(int32_t collective) const { return kind_of_[static_cast<size_t>(collective)]; }

 private:
  std::vector<std::string> names_;
  std::vector<size_t> kind_of_;
};

class Overlap {
 public:
  Overlap(const isa::ProgramInfo& info, const CollectiveKinds& kinds)
      : info_(info), kinds_(kinds), of_kinds_(kinds.names().size()) {}

  // The time up to now belongs to what has been under way. `change` is told of the totals of
  // which operations change, `cover` of how long the operation of the main stream (-1: none)
  // hid each of the collectives.
  template <typename Change, typename Covered>
  void Settle(Picoseconds now, Picoseconds compute, const Change& change, const Covered& covered) {
    const Picoseconds busy = compute - compute_, idle = now - since_ - busy;
    since_ = now;
    compute_ = compute;
    if (busy == Picoseconds(0) && idle == Picoseconds(0)) return;
    const int32_t main = main_.empty() ? -1 : main_.back();
    if (main >= 0) {
      OpTotals& totals = change(main);
      totals.main += busy + idle;
      totals.main_busy += busy;
    }
    SettleKinds(busy, idle);
    const int32_t waits_for = main < 0 ? -1 : isa::WaitsFor(info_, main);
    for (const int32_t collective : in_flight_) {
      OpTotals& totals = change(collective);
      totals.total += busy + idle;
      totals.exposed += idle;
      if (waits_for >= 0) (waits_for == collective ? totals.waited : totals.behind) += idle;
      if (busy != Picoseconds(0)) covered(collective, main, busy);
    }
    if (in_flight_.empty()) return;
    any_.in_flight += busy + idle;
    any_.hidden += busy;
  }

  void MainBegan(int32_t op) { main_.push_back(op); }
  void MainEnded() { main_.pop_back(); }
  void CollectiveBegan(int32_t op) { in_flight_.push_back(op); }
  void CollectiveEnded(int32_t op);

  std::vector<CollectiveKindTotals> OfKinds() const;
  // The time in which any collective is in flight, and the part of it without a busy compute slot.
  Picoseconds in_flight() const { return any_.in_flight; }
  Picoseconds exposed() const { return any_.in_flight - any_.hidden; }

  // Visits the state; everything up to now must have been settled.
  void Visit(steady::StateVisitor& visitor);

 private:
  struct OfKind {
    Picoseconds in_flight{0}, hidden{0};
    int64_t seen = 0;  // the settling that counted it last
  };
  void SettleKinds(Picoseconds busy, Picoseconds idle);

  const isa::ProgramInfo& info_;
  const CollectiveKinds& kinds_;
  std::vector<OfKind> of_kinds_;
  OfKind any_;
  int64_t settled_ = 0;
  std::vector<int32_t> main_;       // labels open on the main stream
  std::vector<int32_t> in_flight_;  // in the order in which they began
  Picoseconds since_{0};
  Picoseconds compute_{0};
};

// A table of the times for which operations hid collectives.
class CoverTable {
 public:
  size_t RowOf(int32_t collective, int32_t by);
  Picoseconds& TimeOf(size_t row) { return rows_[row].time; }
  const std::vector<Cover>& rows() const { return rows_; }

 private:
  std::vector<Cover> rows_;
  std::map<std::pair<int32_t, int32_t>, size_t> found_;
};

}  // namespace tpusim::sim

#endif  // TPUSIM_SIM_OVERLAP_H_
