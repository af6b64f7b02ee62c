// The TPU compiler's choices of collective algorithms as data: rows {when, choice, evidence}.
//
// configs/compilers/collectives/libtpu-VERSION.json holds them, beside the compiler's other
// policy (configs/policy.h). A collective is described by its kind, the chip and a few facts about
// its group and its bytes; a condition bounds some of them, and the first row whose condition holds
// decides. A row either says what the compiler prints (emitter, strategy, colors, phases) and which
// of our algorithms do that, or that the collective is done as an all-reduce, which is then looked
// up in its turn. Two smaller lists of conditions say through which groups the compiler threads one
// ring, and which collectives it hands to the SparseCores where nothing else decides that; a list
// of kernels says how the code of a choice goes through its operand (sum_kernel.h).
//
// What a row rests on is its evidence, which decides nothing: how many collectives of the sweep in
// validation/collectives come to it and agree, between which sizes a bound must lie, the compiler's
// flag. tools/validation/collective_choices.py replays the sweep, `tpusim configs CHIP --compiler`
// prints the rows.
#ifndef TPUSIM_WORKLOADS_COLLECTIVES_CHOICE_TABLE_H_
#define TPUSIM_WORKLOADS_COLLECTIVES_CHOICE_TABLE_H_

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "workloads/collectives/collective.h"
#include "workloads/collectives/sum_kernel.h"

namespace tpusim::collectives {

// The facts about a collective that a condition may ask, by their names in the file; yes is 1 and
// no is 0.
enum class Fact {
  kAxes,            // along which the group extends, as the compiler counts: the devices of a chip
                    // are more of the first
  kShortestAxis,    // chips along the shortest
  kLongestAxis,     // members along the longest
  kEven,            // as many chips along all axes
  kDevicesPerChip,  // members on each chip
  kMembers,
  kEveryChip,  // of the slice has members
  kSlices,     // over which the group extends
  kSliceChips,
  kOperandBytes,    // of one device
  kPartBytes,       // the operand over the members
  kMinorDimension,  // gathers or scatters the last of several dimensions
  kPartRowBytes,    // then: of a part, along that dimension
  kOffloaded,       // the SparseCores run it
  kRing,            // one ring is threaded through the group
  kSinglePhase,     // the operand is at most compiler.single_phase_most_bytes
  kOffloadSize,     // it is at least compiler.offload_least_bytes
  kOneWayRing,      // at most compiler.one_way_ring_most_members
  kOneWayAxes,      // the longest axis has at most compiler.one_way_axis_most_members
};
inline constexpr size_t kFacts = 19;  // number: columns of the table
using Facts = std::array<int64_t, kFacts>;

struct Condition {
  struct Bound {
    Fact fact;
    int64_t least, most;
  };
  std::vector<CollectiveKind> kinds;  // any if empty
  std::vector<std::string> chips;     // any if empty
  std::vector<Bound> bounds;          // all must hold

  bool IsAbout(std::string_view chip) const;
  bool Holds(CollectiveKind kind, std::string_view chip, const Facts& facts) const;
};

// The places where a choice was seen; every field may be empty.
struct Evidence {
  // Collectives of the sweep, by chip: of a choice those that it decides, of another condition
  // those that come out as printed only with it.
  std::map<std::string, int> collectives;
  std::string source;   // where it is not the sweep
  std::string bracket;  // the nearest that were seen to behave otherwise
  std::string flag;     // the TPU compiler's
};

// A ring, or an off-load.
struct ConditionRow {
  Condition when;
  Evidence evidence;
};

struct ChoiceRow {
  Condition when;
  Evidence evidence;
  bool as_all_reduce = false;
  std::string emitter, strategy;  // as printed; empty where nothing is
  int colors = 0, colors_per_axis = 0;
  int phases = 0, phases_per_axis = 0;
  bool asynchronous = false;
  std::vector<std::string> families;  // that do what is printed, the first that applies counts
  std::string assumed;                // what was taken where nothing is printed
  std::optional<SumKernel> kernel;    // of sums
};

struct ChoiceTable {
  // Chips and slices (extents in chips, ascending) that were compiled for.
  std::map<std::string, std::vector<std::array<int64_t, 3>>> swept;  // number: axes of a slice
  std::vector<ConditionRow> rings, offloads;
  std::vector<ChoiceRow> rows;
};

// `where` names the file in messages. Error: says which row, what is wrong with it and what there
// is.
absl::StatusOr<ChoiceTable> ParseChoiceTable(std::string_view json, const std::string& where);

// Returns the table of the compiler whose policy is built in.
const ChoiceTable& CompilerChoices();

// Texts for people: "all-reduce, ring, operand_bytes <= 10240", "SinglePhaseRingSumEmitter".
std::string TextOf(const Condition& condition);
std::string TextOf(const ChoiceRow& row);

}  // namespace tpusim::collectives

#endif  // TPUSIM_WORKLOADS_COLLECTIVES_CHOICE_TABLE_H_
