// Lower bounds of a program's step and memory, from the program before it has kernels: `tpusim
// compile --emit bounds`, which `tpusim search` asks before it simulates a candidate.
//
// The program is partitioned and simplified as for a run. What is multiplied and exchanged then is
// what every schedule multiplies and exchanges, and arguments that are read from end to end come
// from HBM (workloads/search/compiled_bound.h, whole_reads.h).
#ifndef TPUSIM_TOOLS_TPUSIM_FIND_LOWER_BOUNDS_H_
#define TPUSIM_TOOLS_TPUSIM_FIND_LOWER_BOUNDS_H_

#include <string>

#include "absl/status/statusor.h"
#include "configs/units.h"
#include "tools/tpusim/command_line/program_flags.h"

namespace tpusim::tools {

struct LowerBounds {
  Picoseconds schedule{0};  // matrix work and synchronous collectives, or the busiest links
  Picoseconds reads{0};     // reads of arguments from HBM, at its nominal rate
  Bytes arguments{0};       // arguments of one device in HBM
  Bytes usable{0};          // usable HBM of one device
  int64_t chips = 0;
};

// Returns the bounds of one step. Errors: as Prepare (pipeline.h), and --passes, since the bounds
// are of the program that the default pipeline makes.
absl::StatusOr<LowerBounds> LowerBoundsOf(const std::string& workload, const std::string& config,
                                          const ProgramFlags& flags);

// {"schedule_ns", "reads_ns", "argument_bytes", "usable_hbm_bytes", "chips"}, in one line.
std::string ToJsonText(const LowerBounds& bounds);

}  // namespace tpusim::tools

#endif  // TPUSIM_TOOLS_TPUSIM_FIND_LOWER_BOUNDS_H_
