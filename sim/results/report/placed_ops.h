// The operations that a device executed, each with its place in the source program: the input of
// the alignment of two compilers' work (alignment.h). They are not in the report file.
//
// All time of the main stream belongs to one of these, or is idle. A wait belongs to the transfer
// that is waited for, and so does what starts that.
#ifndef TPUSIM_SIM_RESULTS_REPORT_PLACED_OPS_H_
#define TPUSIM_SIM_RESULTS_REPORT_PLACED_OPS_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "configs/units.h"
#include "models/isa/place.h"
#include "models/isa/program_info.h"
#include "sim/timeline.h"

namespace tpusim::results {

// The part of the time: a kernel computes, a collective is waited for, a copy moves or only
// reorders, and the rest launches and branches.
enum class OpPart { kKernel, kCollective, kCopy, kRest };
inline constexpr std::array kOpParts = {OpPart::kKernel, OpPart::kCollective, OpPart::kCopy,
                                        OpPart::kRest};
std::string_view PartName(OpPart part);  // "kernel", ...

struct PlacedOp {
  std::string name;
  OpPart part = OpPart::kRest;
  int64_t place = 0;             // index into PlacedProgram::places
  std::vector<int64_t> covered;  // of a fused kernel, likewise
  int64_t count = 0;             // executions
  Picoseconds time{0};           // of the main stream, all executions
  int32_t collective = -1;       // index into PlacedProgram::collectives
};

// The properties of a collective, but for how often it runs and how long.
struct PlacedCollective {
  std::string kind, algorithm;
  Bytes bytes{0};  // V of one execution
  int64_t group_size = 0;
  bool asynchronous = false;
  auto operator<=>(const PlacedCollective&) const = default;
};

struct PlacedProgram {
  bool by_tpu_compiler = false;
  std::vector<isa::SourcePlace> places;  // scopes without primitives
  std::vector<PlacedCollective> collectives;
  std::vector<PlacedOp> ops;  // empty: this was not asked for
};

// Returns the operations that ran. `known` has the places of operations that come from several.
PlacedProgram PlaceOps(const isa::ProgramInfo& info, const sim::Timeline& timeline,
                       const isa::PlacesOfOps& known, bool by_tpu_compiler);

}  // namespace tpusim::results

#endif  // TPUSIM_SIM_RESULTS_REPORT_PLACED_OPS_H_
