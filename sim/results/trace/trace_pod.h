// The pod at a glance: where a trace has many devices, a track for each class of them that do the
// same, in a group above the devices. Its slices say in a few words what the main stream does:
// "compute", "exposed all-gather". Neighbours that say the same are one slice, with the short gaps
// between them, so that one sees which class waits for which and when, before any device is opened.
#ifndef TPUSIM_SIM_RESULTS_TRACE_TRACE_POD_H_
#define TPUSIM_SIM_RESULTS_TRACE_TRACE_POD_H_

#include <cstdint>
#include <string>
#include <vector>

#include "configs/units.h"
#include "models/isa/program_info.h"
#include "sim/recording/span.h"

namespace tpusim::results {

// Up to so many devices are shown without a summary.
inline constexpr size_t kFewDevices = 8;

// A summary of the main stream of one device.
class PodSummary {
 public:
  struct PodSlice {
    Picoseconds start, end;
    std::string name;
  };
  // Two slices of one name that are not further apart than `gap` are one.
  PodSummary(const isa::ProgramInfo& info, Picoseconds gap) : info_(&info), gap_(gap) {}
  // Adds an operation, in the order of starts; those that contain others are skipped.
  void Add(const sim::Span& op);
  // Returns the slices by start, one after the other.
  const std::vector<PodSlice>& slices() const { return slices_; }

 private:
  const isa::ProgramInfo* info_;
  Picoseconds gap_;
  std::vector<PodSlice> slices_;
};

}  // namespace tpusim::results

#endif  // TPUSIM_SIM_RESULTS_TRACE_TRACE_POD_H_
