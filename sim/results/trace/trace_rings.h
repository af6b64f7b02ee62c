// Rings: their steps are merged in a trace as the grid steps of a kernel are
// (sim/recording/step_merger.h), which keeps traces small.
//
// In a ring shards go from neighbour to neighbour while they are worked on. Its steps are
// operations, each with grid steps of its own, and there are as many as devices on the axis; a
// model of 32 layers has them by tens of thousands. The blocks of an attention are like that, too.
// What counts as a ring is any loop of the main stream that has no loop in it and takes less than
// a hundredth of the step: where it is longer, its steps are what one wants to see.
// A collective in flight is a ring, too, of transfers on links and what arrives.
// Of one execution of a ring each lane of the matrix and vector slots, of DMA and of the links gets
// a quarter as many slices as one operation would get. Operations, collectives and transfers with
// an arrow stay as they are. Sums of busy time and bytes over a row do not change; a slice that is
// of several operations has the name of the loop.
//
// Rates are thinned alike, to as many, each the mean over a part of the ring.
//
// The recording is read once more, before all else, to find the rings. Merged spans stay in memory
// until they are written.
#ifndef TPUSIM_SIM_RESULTS_TRACE_TRACE_RINGS_H_
#define TPUSIM_SIM_RESULTS_TRACE_TRACE_RINGS_H_

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "configs/units.h"
#include "models/isa/program_info.h"
#include "sim/recording/recording.h"
#include "sim/recording/span.h"
#include "sim/recording/step_merger.h"
#include "sim/timeline.h"

namespace tpusim::results {

struct Ring {
  int32_t op = -1;  // the loop
  Picoseconds start, end;
};

// The rings of one device, in order of time, from the operations of its main stream in order of
// their starts, outer ones first.
class RingFinder {
 public:
  // Loops longer than `longest` are not rings.
  RingFinder(const isa::ProgramInfo& info, Picoseconds longest) : info_(&info), longest_(longest) {}
  void Add(const sim::Span& op);
  std::vector<Ring> Finish();

 private:
  struct Open {
    Ring loop;
    bool has_loops = false;
  };
  void CloseUntil(Picoseconds now);

  const isa::ProgramInfo* info_;
  Picoseconds longest_;
  std::vector<Open> open_;
  std::vector<Ring> rings_;
};

// The rings of one device.
struct DeviceRings {
  std::vector<Ring> loops;                       // by start
  std::map<int32_t, std::vector<Ring>> flights;  // of each collective, by start

  // Returns the ring in which the span is merged, or null.
  const Ring* Of(const sim::Span& span) const;
  const Ring* Of(const sim::CounterSample& sample) const;
};
std::map<int32_t, DeviceRings> FindRings(const isa::ProgramInfo& info,
                                         const sim::Timeline& timeline);

// The spans of one row that belong to rings. Spans come in order of their starts.
class RingSpans {
 public:
  // Adds a span; a lane gets at most `limit` slices in a ring, at least 1.
  void Add(const Ring& ring, int64_t limit, int32_t lane, const sim::Span& span);
  // Returns all spans with their lanes, by start; nothing may be added any more.
  const std::vector<std::pair<int32_t, sim::Span>>& Finish();

 private:
  struct Lane {
    const Ring* ring = nullptr;
    sim::ThinnedSpans spans;
  };
  void Close(int32_t lane, Lane& of);

  std::vector<Lane> lanes_;
  std::vector<std::pair<int32_t, sim::Span>> merged_;
};

// The rates of one counter in rings. Samples come in order of time, all of them, whether in a ring
// or not.
class RingRates {
 public:
  // Adds a sample; `ring` is the one that it falls into, or null.
  void Add(const Ring* ring, int64_t limit, const sim::CounterSample& sample);
  // Returns the samples that replace those in rings, by time.
  const std::vector<sim::CounterSample>& Finish();

 private:
  void Close();

  const Ring* ring_ = nullptr;
  double before_ = 0;  // the rate at which the ring begins
  int64_t limit_ = 0;
  std::vector<sim::CounterSample> samples_;  // of the ring
  std::vector<sim::CounterSample> thinned_;
  double last_ = 0;
};

}  // namespace tpusim::results

#endif  // TPUSIM_SIM_RESULTS_TRACE_TRACE_RINGS_H_
