#include "workloads/collectives/compiler_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace tpusim::collectives {
namespace {

// --- Thresholds, each with the sizes between which it must lie ---

// RotatedPincerShort: 512 KiB yes, 1 MiB no.
constexpr Bytes kShortMost(512 * kKiB);
// One-way rings: 8 members yes, 16 no (xla_tpu_uni_direction_ring_max_size = 8).
constexpr int64_t kOneWayMost = 8;
// A reduce-scatter that leaves less than this to each is an all-reduce and a
// slice: 8 KiB is, 16 KiB is not.
constexpr Bytes kScatteredLeast(16 * kKiB);
// Shards of an all-gather over 8x8 that become an all-reduce: 256 KiB yes, 4 MiB no.
constexpr Bytes kGatherAsSumMost(512 * kKiB);
// 1DAllGatherOnMajorDim: 8 KiB yes, 16 KiB no.
constexpr Bytes kMajorDimMost(8 * kKiB);
// Off-loaded sums (those scattered over the last dimension always are): 32 KiB no,
// 128 KiB yes. The compiler's flag
// ..._all_reduce_offload_min_size_in_bytes is 65536.
constexpr Bytes kOffloadLeast(64 * kKiB);
std::string SliceText(const std::array<int64_t, 3>& slice) {
  std::string text;
  for (const int64_t extent : slice) {
    if (extent > 1) text += fmt::format("{}{}", text.empty() ? "" : "x", extent);
  }
  return text.empty() ? "1x1" : text;
}

std::string AssumptionFor(const CompilerQuery& query) {
  const configs::Policy& rules = query.rules;
  if (rules.like.empty()) {
    return fmt::format(
        "algorithms of collectives: the TPU compiler's choice is not known for {}; the fastest are "
        "taken",
        query.chip);
  }
  std::array<int64_t, 3> slice = query.slice;
  std::sort(slice.begin(), slice.end());
  const bool swept = std::find(rules.known_slices.begin(), rules.known_slices.end(), slice) !=
                     rules.known_slices.end();
  if (query.chip != rules.like || !swept) {
    std::string slices;
    for (const auto& each : rules.known_slices) {
      slices += fmt::format("{}{}", slices.empty() ? "" : ", ", SliceText(each));
    }
    return fmt::format(
        "algorithms of collectives: the TPU compiler's choice is not known for {} slices like {}; "
        "taken by the rules of {} {}",
        query.chip, SliceText(query.slice), rules.like, slices);
  }
  if (!query.whole_axes) {
    return "algorithms of collectives: the TPU compiler's choice is not known for groups that are "
           "parts of axes, or no box; taken as if they were the axes of a slice";
  }
  return "";
}

// --- The rules ---

struct Shape {
  std::vector<int64_t> dims;  // axes as the compiler counts them
  bool one_ring = true;       // it threads one ring through the group
  bool even = true;           // as many chips along all axes
};

Shape ShapeOf(const CompilerQuery& query) {
  Shape shape;
  shape.dims = query.extents;
  // The devices of a chip count as more of the first axis.
  if (shape.dims.empty()) {
    shape.dims = {query.cores > 1 ? query.cores : query.members};
  } else {
    shape.dims[0] *= query.cores;
  }
  const bool plane = query.extents.size() == 2 && query.cores == 1;
  const bool narrow = plane && std::min(query.extents[0], query.extents[1]) == 2;
  shape.one_ring = shape.dims.size() == 1 || narrow || (plane && query.rules.planes_are_rings);
  shape.even = std::all_of(query.extents.begin(), query.extents.end(),
                           [&](int64_t n) { return n == query.extents[0]; });
  return shape;
}

void SumOf(const CompilerQuery& query, const Shape& shape, Bytes bytes, CompilerChoice& choice) {
  choice.kind = CollectiveKind::kAllReduce;
  const int dims = static_cast<int>(shape.dims.size());
  const bool is_short = bytes <= kShortMost;
  choice.emitter = is_short ? "RotatedPincerShortEmitter" : "RotatedPincerEmitter";
  if (shape.one_ring) {
    choice.phases = 1;
    if (bytes <= query.rules.single_phase_most_bytes) {
      choice.emitter = "SinglePhaseRingSumEmitter";
      choice.phases = 0;
    } else if (is_short || query.members > kOneWayMost) {
      choice.strategy = "StrategyRing";
      choice.colors = 1;
    } else {
      choice.strategy = "UniDirection1DRingStrategy";
      choice.colors = 2;
    }
    return;
  }
  choice.phases = dims;
  if (!is_short && shape.even && shape.dims[0] <= kOneWayMost) {
    choice.strategy = "UniDirectionNDRingStrategy";
    choice.colors = 2 * dims;
    return;
  }
  choice.strategy = "StrategyND";
  choice.colors = is_short && !shape.even ? 1 : dims;
}

// Sums over all of an even slice of two or three axes are never scattered.
bool WholeEvenSlice(const CompilerQuery& query, const Shape& shape) {
  return !shape.one_ring && shape.even &&
         query.members == query.slice[0] * query.slice[1] * query.slice[2] * query.cores;
}

bool Scatters(const CompilerQuery& query, const Shape& shape) {
  if (WholeEvenSlice(query, shape)) return false;
  // Of the last dimension (1024 elements in all that was compiled) eight members
  // never get parts, and four get smaller ones.
  if (query.minor && query.members == 8) return false;
  if (query.minor && query.members <= 4) return query.operand > query.rules.single_phase_most_bytes;
  return query.operand / query.members >= kScatteredLeast;
}

void GatherOf(const CompilerQuery& query, const Shape& shape, CompilerChoice& choice) {
  using Gathers = configs::Policy::GathersAsSums;
  const Gathers as_sums = query.rules.gathers_as_sums;
  const bool cube = WholeEvenSlice(query, shape) && shape.dims.size() == 3;
  const bool plane = WholeEvenSlice(query, shape) && shape.dims[0] == 8;
  if ((cube && as_sums == Gathers::kCubes) ||
      (plane && as_sums == Gathers::kPlanesOf8 && query.operand <= kGatherAsSumMost)) {
    SumOf(query, shape, query.operand * query.members, choice);
    return;
  }
  if (!query.minor && query.operand <= kMajorDimMost) {
    choice.emitter = "1DAllGatherOnMajorDim";
  } else {
    choice.emitter = query.members <= kOneWayMost ? "1DAllGatherNonMajorDim"
                                                  : "1DAllGatherNonMajorDimImbalanced";
  }
}

}  // namespace

CompilerQuery QueryOf(const configs::Config& config, const CollectiveRequest& request,
                      const GroupForm& form) {
  CompilerQuery query;
  query.kind = request.kind;
  query.chip = config.chip.name;
  query.rules = config.chip.compiler;
  query.slice = config.topology.shape();
  query.operand = request.operand_bytes;
  query.minor = request.minor_dimension;
  query.offloaded = request.sparse_core;
  if (request.kind == CollectiveKind::kPermute) return query;
  query.members = static_cast<int64_t>(request.groups[0].size());
  query.whole_axes = form.box.has_value();
  if (!form.box) return query;
  for (const AxisRun& run : form.box->runs) {
    if (run.axis == kCoreAxis) {
      query.cores = run.n;
    } else if (run.axis == kSliceAxis) {
      query.slices = run.n;
    } else {
      query.extents.push_back(run.n);
      query.whole_axes = query.whole_axes && run.n == config.topology.shape()[run.axis];
    }
  }
  return query;
}

CompilerChoice ChoiceOfCompiler(const CompilerQuery& query) {
  CompilerChoice choice;
  choice.kind = choice.of = query.kind;
  if (query.slices > 1) {
    choice.assumption =
        "algorithms of collectives: the TPU compiler's choice is not known for groups that span "
        "several slices; the fastest is taken";
    return choice;
  }
  choice.assumption = AssumptionFor(query);
  const Shape shape = ShapeOf(query);
  const configs::Policy& rules = query.rules;
  const int64_t chips = query.slice[0] * query.slice[1] * query.slice[2];
  const bool routed = rules.routed_above_chips > 0 && chips > rules.routed_above_chips;
  if (rules.like.empty()) {
    choice.asynchronous = query.kind == CollectiveKind::kPermute;
    return choice;
  }
  switch (query.kind) {
    case CollectiveKind::kAllReduce:
    case CollectiveKind::kReduceScatter:
      choice.offloaded = query.offloaded.value_or(rules.offloads_collectives &&
                                                  (query.minor || query.operand >= kOffloadLeast));
      if (choice.offloaded) break;
      if (query.kind == CollectiveKind::kReduceScatter && Scatters(query, shape)) {
        choice.emitter = "SingleInputAllReduceScatterFusion";
        choice.strategy = "StrategyRing";
        choice.colors = choice.phases = 1;
      } else {
        SumOf(query, shape, query.operand, choice);
      }
      break;
    case CollectiveKind::kAllGather:
      choice.offloaded = query.offloaded.value_or(rules.offloads_collectives);
      if (!choice.offloaded) GatherOf(query, shape, choice);
      break;
    case CollectiveKind::kAllToAll:
      choice.emitter = routed ? "NetRouterEmitter" : "AllToAllEmitter";
      break;
    case CollectiveKind::kPermute:
      choice.asynchronous = !routed;
      break;
  }
  if (choice.offloaded && choice.assumption.empty()) {
    choice.assumption =
        "algorithms of collectives: those that the TPU compiler off-loads are not printed; the "
        "fastest are taken";
  }
  return choice;
}

std::vector<std::string> FamiliesOf(const CompilerChoice& choice) {
  // What a ring through the group is, depending on how the group lies. An axis
  // that does not close is taken as a line: a ring that goes there and back on it
  // puts the same bytes on every link.
  const std::vector<std::string> ring = {"ring", "line", "hamiltonian-ring", "minimum-hop-ring",
                                         "axis-by-axis"};
  std::vector<std::string> families;
  if (choice.offloaded || choice.emitter.empty()) {
    return {};
  } else if (choice.emitter == "AllToAllEmitter") {
    families = {"direct", "rotated", "ring", "line", "axis-by-axis"};
  } else if (choice.emitter == "NetRouterEmitter") {
    families = {"rotated", "ring", "line", "axis-by-axis", "direct"};
  } else if (choice.emitter == "SinglePhaseRingSumEmitter") {
    for (const std::string& family : ring) families.push_back("single-phase:" + family);
  } else if (choice.strategy == "UniDirection1DRingStrategy") {
    families = {"unidirectional-ring", "line", "unidirectional-hamiltonian-ring"};
    families.insert(families.end(), ring.begin(), ring.end());
  } else if (choice.strategy == "UniDirectionNDRingStrategy") {
    families = {"unidirectional-rotated", "rotated", "axis-by-axis"};
  } else if (choice.strategy == "StrategyND") {
    families = {choice.colors > 1 ? "rotated" : "axis-by-axis", "axis-by-axis"};
  } else {
    families = ring;
  }
  if (choice.kind != choice.of) {
    for (std::string& family : families) family.insert(0, "as-all-reduce:");
  }
  return families;
}

}  // namespace tpusim::collectives
