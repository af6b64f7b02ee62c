// Arrows of a trace: which ends belong together, and how they are drawn.
//
// Two kinds. A transfer leaves a chip and arrives at another; the recording has a number for
// each (sim/recorder.h). An asynchronous operation is started by the main stream, is in
// flight beside it, and is waited for: start -> flight -> done, all on one device, the n-th
// execution of each together.
//
// Perfetto wants the begin of an arrow before its end in the file, also where both are at one
// moment, so an arrow can leave or arrive at the end of its slice, too: a flight takes the
// arrow of its start and passes it to its done where it ends.
#ifndef TPUSIM_SIM_RESULTS_TRACE_TRACE_ARROWS_H_
#define TPUSIM_SIM_RESULTS_TRACE_TRACE_ARROWS_H_

#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "models/isa/program_info.h"
#include "sim/recording/span.h"
#include "sim/results/trace/trace_model.h"

namespace tpusim::results {

// Finds the ends of transfers' arrows; it stores those under way.
class ArrowMatcher {
 public:
  // Error (internal): an arrow that leaves or arrives twice, or arrives before it left.
  absl::Status Add(const sim::Span& span);
  // Draws the arrows of a span, after all were added. Arrows that are still open then end on a
  // device that is not in the trace.
  void Draw(const sim::Span& span, TraceSlice& slice) const;

 private:
  struct Ends {
    bool out = false, in = false;
    Picoseconds leaves;
    Picoseconds arrives_in_start, arrives_in_end;
  };
  absl::Status Match(uint64_t arrow);

  std::map<uint64_t, Ends> open_;
  std::set<uint64_t> at_end_;   // it leaves after the slice in which it ends has begun
  std::set<uint64_t> at_once_;  // it arrives at the moment in which it leaves
};

// Arrows of asynchronous operations.
class FlightMatcher {
 public:
  explicit FlightMatcher(const isa::ProgramInfo& info) : info_(info) {}

  // Counts, in the first reading.
  void Add(const sim::Span& span);
  // Draws, in the second reading, in the same order.
  void Draw(const sim::Span& span, TraceSlice& slice);

 private:
  // The executions so far of one operation on one device.
  struct Flights {
    int64_t starts = 0, flights = 0, dones = 0;
    int64_t whole = -1;        // executions that have all three, once all are counted
    uint64_t first_arrow = 0;  // two for each
  };
  enum class ArrowRole { kNone, kStart, kFlight, kDone };
  // Returns the role of a span, and the operation that is in flight.
  std::pair<ArrowRole, int32_t> RoleOf(const sim::Span& span) const;
  void Number();

  const isa::ProgramInfo& info_;
  std::map<std::pair<int32_t, int32_t>, Flights> flights_;  // by device and operation
  bool numbered_ = false;
};

}  // namespace tpusim::results

#endif  // TPUSIM_SIM_RESULTS_TRACE_TRACE_ARROWS_H_
