// The algorithm that the TPU compiler chooses for a collective.
//
// The compiler prints, for every collective that it emits, the emitter, and for
// sums the strategy with its numbers of colors (parts of the data that take
// different ways) and phases (axes one after the other). The rows of
// choice_table.h say what it would print, from the chip, how the group lies in the
// slice and how many bytes there are. What a slice, chip or group without such data
// gets is an assumption, and said to be one: so is what is off-loaded or spans slices,
// of which nothing is printed.
//
// What the names mean, as far as they and the compiler's flags tell:
//   SinglePhaseRingSum   whole operands go round, every member adds
//   RotatedPincer        reduce-scatter and all-gather; a pincer closes from both
//                        sides: data goes both ways round a ring. Several axes are
//                        taken in rotated orders, one per color. -Short: the
//                        variant for small data
//   StrategyRing         one ring, one color, both ways
//   UniDirection1DRing   two colors, each one way round, opposite to each other
//   StrategyND           as many colors as axes, both ways
//   UniDirectionNDRing   two colors per axis, each one way
//   1DAllGather...       one ring through the whole group, whatever its axes
//   AllToAll             blocks go straight to their destination
//   NetRouter            blocks are passed on, axis by axis: on v5e slices of more
//                        than one host's reach
#ifndef TPUSIM_WORKLOADS_COLLECTIVES_COMPILER_CHOICE_H_
#define TPUSIM_WORKLOADS_COLLECTIVES_COMPILER_CHOICE_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "configs/config.h"
#include "workloads/collectives/candidates.h"
#include "workloads/collectives/choice_table.h"
#include "workloads/collectives/collective.h"

namespace tpusim::collectives {

struct CompilerQuery {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  std::string chip;                          // "v5e"
  configs::Policy policy;                    // `like`: the chip whose rows count; "": none do
  // number: axes of a slice
  std::array<int64_t, 3> slice = {1, 1, 1};  // chips
  int64_t members = 1;
  std::vector<int64_t> extents;  // of the group along each axis over which it extends
  int64_t cores = 1;             // members per chip
  int64_t slices = 1;            // over which it extends
  bool whole_axes = true;        // spans its axes, not only parts of them; false for no box
  Bytes operand;                 // of one device
  bool minor = false;            // gathers or scatters the last of several dimensions
  Bytes part_row{0};             // then: of a part, along that dimension
  // Whether the SparseCores run it, if that is decided; else as the compiler does.
  std::optional<bool> offloaded = std::nullopt;
  StatedEmitter stated;  // by a module that the compiler wrote
};
CompilerQuery QueryOf(const configs::Config& config, const CollectiveRequest& request,
                      const GroupForm& form);
// Along whole axes of a slice: x, y and z, and c for the devices of each chip.
// number: axes of a slice
CompilerQuery QueryAlong(const configs::ChipParams& chip, const std::array<int64_t, 3>& slice,
                         std::string_view axes, CollectiveKind kind, Bytes operand);

struct CompilerChoice {
  // kAllReduce for an all-gather or reduce-scatter that is done as one.
  CollectiveKind kind = CollectiveKind::kAllReduce;
  CollectiveKind of = CollectiveKind::kAllReduce;  // the collective itself
  // The printed words; "" and 0 where nothing is printed.
  std::string emitter, strategy;
  int colors = 0, phases = 0;
  bool offloaded = false;     // a call to another core, which prints nothing
  bool asynchronous = false;  // permutes only: start and done
  // Families of algorithms that do this, the first that applies counts; empty: the fastest.
  std::vector<std::string> families;
  std::optional<SumKernel> kernel;  // of the chip's own code
  std::string assumption;           // "" where the choice is known
  std::vector<size_t> rows;         // of the table that led here
};
CompilerChoice ChoiceOfCompiler(const CompilerQuery& query,
                                const ChoiceTable& table = CompilerChoices());

// Whether there are collectives that go to the SparseCores without being told to.
bool OffLoadsCollectives(const configs::Policy& policy);

}  // namespace tpusim::collectives

#endif  // TPUSIM_WORKLOADS_COLLECTIVES_COMPILER_CHOICE_H_
