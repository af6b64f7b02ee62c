#include "workloads/collectives/compiler_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace tpusim::collectives {
namespace {

constexpr char kAbout[] = "algorithms of collectives: ";

std::string SliceText(const std::array<int64_t, 3>& slice) {  // number: axes of a slice
  std::string text;
  for (const int64_t extent : slice) {
    if (extent > 1) text += fmt::format("{}{}", text.empty() ? "" : "x", extent);
  }
  return text.empty() ? "1x1" : text;
}

// Says how a choice was extrapolated that a row says is printed, if this collective is unlike those
// that were compiled.
std::string ExtrapolationOf(const CompilerQuery& query, const ChoiceTable& table) {
  std::array<int64_t, 3> slice = query.slice;  // number: axes of a slice
  std::ranges::sort(slice);
  const auto swept = table.swept.find(query.policy.like);
  const std::vector<std::array<int64_t, 3>> slices =  // number: axes of a slice
      // number: axes of a slice
      swept != table.swept.end() ? swept->second : std::vector<std::array<int64_t, 3>>();
  if (query.chip != query.policy.like || std::ranges::find(slices, slice) == slices.end()) {
    std::string known;
    for (const auto& each : slices) {
      known += fmt::format("{}{}", known.empty() ? "" : ", ", SliceText(each));
    }
    return fmt::format(
        "{}the TPU compiler's choice is not known for {} slices like {}; taken by the rules of {} "
        "{}",
        kAbout, query.chip, SliceText(query.slice), query.policy.like, known);
  }
  if (!query.whole_axes) {
    return fmt::format(
        "{}the TPU compiler's choice is not known for groups that span part of an axis or form no "
        "box; such a group is treated as a slice of its own",
        kAbout);
  }
  return "";
}

// Members along the axes as the compiler counts them: the devices of a chip count as more of
// the first axis.
std::vector<int64_t> AxesOf(const CompilerQuery& query) {
  std::vector<int64_t> axes = query.extents;
  if (axes.empty()) return {query.cores > 1 ? query.cores : query.members};
  axes[0] *= query.cores;
  return axes;
}

Facts FactsOf(const CompilerQuery& query, const ChoiceTable& table) {
  const std::vector<int64_t> axes = AxesOf(query);
  const std::vector<int64_t>& extents = query.extents.empty() ? axes : query.extents;
  const int64_t chips = query.slice[0] * query.slice[1] * query.slice[2];
  const auto [shortest, longest] = std::minmax_element(extents.begin(), extents.end());
  Facts facts = {};
  const auto set = [&facts](Fact fact, int64_t value) { facts[static_cast<size_t>(fact)] = value; };
  set(Fact::kAxes, static_cast<int64_t>(axes.size()));
  set(Fact::kShortestAxis, *shortest);
  set(Fact::kLongestAxis, *std::ranges::max_element(axes));
  set(Fact::kEven, *shortest == *longest);
  set(Fact::kDevicesPerChip, query.cores);
  set(Fact::kMembers, query.members);
  set(Fact::kEveryChip, query.members == chips * query.cores);
  set(Fact::kSlices, query.slices);
  set(Fact::kSliceChips, chips);
  set(Fact::kOperandBytes, query.operand.value());
  set(Fact::kPartBytes, query.operand.value() / query.members);
  set(Fact::kMinorDimension, query.minor);
  set(Fact::kPartRowBytes, query.part_row.value());
  set(Fact::kSinglePhase, query.operand <= query.policy.single_phase_most_bytes);
  set(Fact::kOffloadSize, query.operand >= query.policy.offload_least_bytes);
  set(Fact::kOneWayRing, query.members <= query.policy.one_way_ring_most_members);
  set(Fact::kOneWayAxes,
      facts[static_cast<size_t>(Fact::kLongestAxis)] <= query.policy.one_way_axis_most_members);
  const auto any = [&](const std::vector<ConditionRow>& rows) {
    return std::ranges::any_of(rows, [&](const ConditionRow& row) {
      return row.when.Holds(query.kind, query.policy.like, facts);
    });
  };
  set(Fact::kOffloaded, query.offloaded.value_or(any(table.offloads)));
  set(Fact::kRing, any(table.rings));
  return facts;
}

std::optional<size_t> FirstRow(const CompilerQuery& query, const Facts& facts,
                               const ChoiceTable& table) {
  for (size_t i = 0; i < table.rows.size(); ++i) {
    if (table.rows[i].when.Holds(query.kind, query.policy.like, facts)) return i;
  }
  return std::nullopt;
}

void Take(const ChoiceRow& row, int axes, CompilerChoice& choice) {
  choice.emitter = row.emitter;
  choice.strategy = row.strategy;
  choice.colors = row.colors + row.colors_per_axis * axes;
  choice.phases = row.phases + row.phases_per_axis * axes;
  choice.asynchronous = row.asynchronous;
  choice.families = row.families;
  choice.kernel = row.kernel;
  if (choice.kind == choice.of) return;
  for (std::string& family : choice.families) family.insert(0, "as-all-reduce:");
}

}  // namespace

CompilerQuery QueryOf(const configs::Config& config, const CollectiveRequest& request,
                      const GroupForm& form) {
  CompilerQuery query;
  query.kind = request.kind;
  query.chip = config.chip.name;
  query.policy = config.chip.compiler;
  query.slice = config.topology.shape();
  query.operand = request.operand_bytes;
  query.minor = request.minor_dimension;
  query.part_row = request.part_row_bytes;
  query.offloaded = request.sparse_core;
  query.stated = request.stated;
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

// number: axes of a slice
CompilerQuery QueryAlong(const configs::ChipParams& chip, const std::array<int64_t, 3>& slice,
                         std::string_view axes, CollectiveKind kind, Bytes operand) {
  CompilerQuery query;
  query.kind = kind;
  query.chip = chip.name;
  query.policy = chip.compiler;
  query.slice = slice;
  query.operand = operand;
  for (const char axis : axes) {
    if (axis == 'c') {
      query.cores = chip.devices;
    } else {
      query.extents.push_back(slice[static_cast<size_t>(axis - 'x')]);
    }
  }
  query.members = query.cores;
  for (const int64_t extent : query.extents) query.members *= extent;
  return query;
}

namespace {

// The row of the table that prints this emitter and strategy: with as many colors, else the first.
// Nothing: no row prints them.
std::optional<size_t> RowOf(const StatedEmitter& stated, int axes, const ChoiceTable& table) {
  std::optional<size_t> found;
  for (size_t i = 0; i < table.rows.size(); ++i) {
    const ChoiceRow& row = table.rows[i];
    if (row.emitter != stated.emitter || row.strategy != stated.strategy) continue;
    if (row.colors + row.colors_per_axis * axes == stated.colors) return i;
    if (!found) found = i;
  }
  return found;
}

}  // namespace

CompilerChoice ChoiceOfCompiler(const CompilerQuery& query, const ChoiceTable& table) {
  CompilerChoice choice;
  choice.kind = choice.of = query.kind;
  if (!query.stated.emitter.empty()) {
    const auto axes = static_cast<int>(FactsOf(query, table)[static_cast<size_t>(Fact::kAxes)]);
    if (const std::optional<size_t> row = RowOf(query.stated, axes, table)) {
      choice.rows.push_back(*row);
      Take(table.rows[*row], axes, choice);
      if (query.chip != query.policy.like) choice.kernel.reset();
      return choice;
    }
    CompilerQuery unstated = query;
    unstated.stated = {};
    choice = ChoiceOfCompiler(unstated, table);
    choice.assumption = fmt::format(
        "{}no algorithm here is that of {}; taken as the compiler's "
        "other choices are",
        kAbout, query.stated.emitter);
    return choice;
  }
  if (query.policy.like.empty()) {
    choice.asynchronous = query.kind == CollectiveKind::kPermute;
    choice.assumption =
        fmt::format("{}the TPU compiler's choice is not known for {}; the fastest are taken",
                    kAbout, query.chip);
    return choice;
  }
  CompilerQuery at = query;
  Facts facts = FactsOf(at, table);
  choice.offloaded = facts[static_cast<size_t>(Fact::kOffloaded)] != 0;
  while (const std::optional<size_t> first = FirstRow(at, facts, table)) {
    const ChoiceRow& row = table.rows[*first];
    choice.rows.push_back(*first);
    if (!row.as_all_reduce || at.kind == CollectiveKind::kAllReduce) {
      Take(row, static_cast<int>(facts[static_cast<size_t>(Fact::kAxes)]), choice);
      // A chip that borrows another's choices does not borrow its kernels: they were read from the
      // code for that chip.
      if (query.chip != query.policy.like) choice.kernel.reset();
      choice.assumption =
          row.assumed.empty() ? ExtrapolationOf(query, table) : kAbout + row.assumed;
      return choice;
    }
    // As an all-reduce of the whole array, which the rows decide in their turn.
    if (at.kind == CollectiveKind::kAllGather) at.operand = at.operand * at.members;
    at.kind = choice.kind = CollectiveKind::kAllReduce;
    at.offloaded = choice.offloaded;
    facts = FactsOf(at, table);
  }
  choice.assumption = fmt::format(
      "{}no row of the TPU compiler's choices is about this; the fastest is taken", kAbout);
  return choice;
}

bool OffLoadsCollectives(const configs::Policy& policy) {
  const std::vector<ConditionRow>& offloads = CompilerChoices().offloads;
  return std::ranges::any_of(
      offloads, [&](const ConditionRow& row) { return row.when.IsAbout(policy.like); });
}

}  // namespace tpusim::collectives
