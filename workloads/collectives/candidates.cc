#include "workloads/collectives/candidates.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "configs/memory.h"
#include "configs/status_macros.h"
#include "models/timing/kernel_timing.h"
#include "workloads/collectives/limits.h"
#include "workloads/collectives/routes.h"

namespace tpusim::collectives {
namespace {

using RouteTie = configs::Topology::RouteTie;

constexpr std::string_view kAxisNames[kMaxDimensions] = {"x", "y", "z", "cores", "slices"};

// Dimension between the slices: what a device may send to all the others together when
// all do.
Dimension SliceDimension(const configs::Config& config, const CollectiveRequest& request,
                         const GroupForm& form, const AxisRun& run) {
  Dimension dimension;
  dimension.shape = Dimension::Shape::kSwitched;
  dimension.n = run.n;
  dimension.axis = run.axis;
  dimension.stride = run.stride;
  dimension.closed = run.ring;
  dimension.dcn_latency = timing::DcnLatency(config.chip.host);
  LinkLoads loads(config);
  const int64_t in_slice = config.topology.devices() / config.topology.slices();
  // Members of the group at hand, by their place in a slice: those of one place
  // exchange. They are counted, as their pairs grow with the square of the slices.
  std::vector<int64_t> at_place(static_cast<size_t>(in_slice));
  for (const size_t g : form.groups) {
    const std::vector<int64_t>& group = request.groups[g];
    for (const int64_t device : group) ++at_place[device % in_slice];
    for (const int64_t device : group) {
      loads.AddBetweenSlices(device, at_place[device % in_slice] - 1);
    }
    for (const int64_t device : group) at_place[device % in_slice] = 0;
  }
  dimension.rate = loads.Share() * static_cast<double>(run.n - 1);
  return dimension;
}

// A group that spans a twisted axis and all those along which it is shifted can
// close it. Not for an all-to-all, whose blocks are never gathered.
void CloseTwisted(const configs::Topology& topology, const CollectiveRequest& request,
                  const Box& box, Dimension& dimension) {
  if (dimension.axis >= configs::kMaxAxes || !topology.IsTwisted(dimension.axis) ||
      dimension.stride != 1 || dimension.n != topology.shape()[dimension.axis] ||
      request.kind == CollectiveKind::kAllToAll) {
    return;
  }
  const configs::Coordinates begin = topology.At(0);
  configs::Coordinates end = begin;
  end.at[dimension.axis] = dimension.n - 1;
  const configs::Coordinates over = topology.At(topology.Neighbour(
      topology.ChipAt(end), configs::MakeDirection(dimension.axis, /*plus=*/true)));
  uint32_t shifted = 0;
  for (int axis = 0; axis < configs::kMaxAxes; ++axis) {
    if (over.at[axis] == begin.at[axis]) continue;
    const auto run =
        std::ranges::find_if(box.runs, [axis](const AxisRun& r) { return r.axis == axis; });
    if (run == box.runs.end() || !run->ring || run->stride != 1) return;
    shifted |= 1U << (run - box.runs.begin());
  }
  dimension.shape = Dimension::Shape::kRing;
  dimension.closes_after = shifted;
}

// Returns the members on the chip that has most, over all groups of the form.
int64_t MembersPerChip(const configs::Topology& topology, const CollectiveRequest& request,
                       const GroupForm& form) {
  if (topology.devices_per_chip() == 1) return 1;
  std::vector<int64_t> members(static_cast<size_t>(topology.chips()));
  int64_t most = 1;
  for (const size_t g : form.groups) {
    for (const int64_t device : request.groups[g]) {
      most = std::max(most, ++members[device / topology.devices_per_chip()]);
    }
  }
  return most;
}

// Dimension along one run of a box. Chips that are not neighbours exchange over all
// links between them, which they share with the groups in between; and the
// devices of a chip share its links.
Dimension AxisDimension(const configs::Config& config, const CollectiveRequest& request,
                        const GroupForm& form, size_t run_index) {
  const configs::Topology& topology = config.topology;
  const AxisRun& run = form.box->runs[run_index];
  if (run.axis == kSliceAxis) return SliceDimension(config, request, form, run);
  Dimension dimension;
  dimension.shape = run.ring ? Dimension::Shape::kRing : Dimension::Shape::kLine;
  dimension.n = run.n;
  dimension.axis = run.axis;
  dimension.stride = run.stride;
  dimension.hops = run.stride;
  if (run.axis == kCoreAxis) {
    dimension.rate = config.chip.ici.die_to_die_bytes_per_second;
    return dimension;
  }
  dimension.rate = timing::EffectiveLinkRate(config.chip.ici, topology.LinksAlong(run.axis));
  CloseTwisted(topology, request, *form.box, dimension);
  // Between neighbours a link carries what the devices of one chip send.
  if (run.stride == 1) {
    dimension.rate = dimension.rate / static_cast<double>(MembersPerChip(topology, request, form));
    return dimension;
  }
  LinkLoads loads(config);
  for (const int64_t offset : {run.stride, -run.stride}) {
    for (size_t i = 0; i < form.groups.size(); ++i) {
      for (const int64_t device : request.groups[form.groups[i]]) {
        const int64_t at = PositionIn(topology, form.boxes[i], device)[run_index];
        const bool at_end = offset > 0 ? at == run.n - 1 : at == 0;
        if (run.ring || !at_end) {
          loads.Add(device, AxisRouteEnd(topology, run.axis, offset, device));
        }
      }
    }
  }
  dimension.rate = loads.Share();
  return dimension;
}

// One ring through all members of each group, in the order of `lists`.
Dimension ListRing(const configs::Config& config, const std::vector<std::vector<int64_t>>& lists) {
  LinkLoads loads(config);
  for (const std::vector<int64_t>& list : lists) {
    for (size_t i = 0; i < list.size(); ++i) {
      const int64_t next = list[(i + 1) % list.size()];
      loads.Add(list[i], RouteTo(config.topology, list[i], next, RouteTie::kPlus));
      loads.Add(next, RouteTo(config.topology, next, list[i], RouteTie::kMinus));
    }
  }
  return {.shape = Dimension::Shape::kRing,
          .n = static_cast<int64_t>(lists[0].size()),
          .rate = loads.Share(),
          .hops = loads.longest(),
          .dcn_latency = loads.dcn() ? timing::DcnLatency(config.chip.host) : Picoseconds(0)};
}

Dimension ScatteredDimension(const configs::Config& config,
                             const std::vector<std::vector<int64_t>>& lists) {
  LinkLoads loads(config);
  for (const std::vector<int64_t>& list : lists) {
    for (const int64_t from : list) {
      for (const int64_t to : list) {
        for (const RouteTie tie : {RouteTie::kPlus, RouteTie::kMinus}) {
          loads.Add(from, RouteTo(config.topology, from, to, tie));
        }
      }
    }
  }
  return {.shape = Dimension::Shape::kScattered,
          .n = static_cast<int64_t>(lists[0].size()),
          .rate = loads.BusiestRate(),
          .hops = loads.longest(),
          .busiest = loads.Busiest(),
          .dcn_latency = loads.dcn() ? timing::DcnLatency(config.chip.host) : Picoseconds(0)};
}

std::string OneDimensionName(const Dimension& dimension,
                             std::string_view ring = "bidirectional ring") {
  if (dimension.shape == Dimension::Shape::kSwitched) {
    return fmt::format("direct exchange between {} slices", dimension.n);
  }
  std::string name(dimension.shape == Dimension::Shape::kRing ? ring : "line");
  name += fmt::format(" of {} over {}", dimension.n, kAxisNames[dimension.axis]);
  if (dimension.stride > 1) name += fmt::format(", every {} chips", dimension.stride);
  return name;
}

std::string ManyDimensionName(const std::vector<Dimension>& dimensions,
                              const std::vector<std::vector<int>>& orders, const Box& box) {
  // Between slices there is neither.
  const auto all = [&](Dimension::Shape shape) {
    return std::ranges::all_of(dimensions, [&](const Dimension& dimension) {
      return dimension.shape == shape || dimension.shape == Dimension::Shape::kSwitched;
    });
  };
  const bool rings = all(Dimension::Shape::kRing), lines = all(Dimension::Shape::kLine);
  const int64_t slices = box.SpansSlices() ? dimensions.back().n : 1;
  std::string name =
      fmt::format("{}-color {}-D {} {}", orders.size(), dimensions.size() - (slices > 1 ? 1 : 0),
                  rings   ? "ring"
                  : lines ? "line"
                          : "ring and line",
                  box.Extents());
  if (slices > 1) name += fmt::format(" and {} slices", slices);
  if (orders.size() > 1) return name;
  name += " (";
  for (size_t i = 0; i < dimensions.size(); ++i) {
    name += fmt::format("{}{}", i == 0 ? "" : ", ", kAxisNames[dimensions[orders[0][i]].axis]);
  }
  return name + ")";
}

class CandidateCollector {
 public:
  CandidateCollector(const configs::Config& config, const CollectiveRequest& request,
                     const Wanted& wanted)
      : config_(config), request_(request), wanted_(wanted) {}

  // Whether it is worth laying out this family, with or without a single phase.
  bool Wants(std::string_view family) const {
    return wanted_(family) || (SinglePhase() && wanted_(SinglePhaseOf(family)));
  }

  void Add(std::string_view family, std::string name, std::vector<Dimension> dimensions,
           std::vector<std::vector<int>> orders, std::vector<std::vector<int64_t>> lists = {},
           std::vector<Way> ways = {}) {
    Algorithm candidate;
    Plan& plan = candidate.plan;
    plan.dimensions = std::move(dimensions);
    plan.orders = std::move(orders);
    plan.ways = std::move(ways);
    plan.kind = request_.kind;
    plan.hop_latency = config_.chip.ici.hop_latency;
    candidate.lists = std::move(lists);
    candidate.family = family;
    candidate.algorithm = std::move(name);
    if (wanted_(family)) Finish(candidate);
    // One way only, a single phase would lose what it is for.
    if (!SinglePhase() || !plan.ways.empty() || !wanted_(SinglePhaseOf(family))) return;
    plan.single_phase = true;
    candidate.family = SinglePhaseOf(family);
    candidate.algorithm = "single-phase " + candidate.algorithm;
    Finish(candidate);
  }

  std::vector<Algorithm> Take() { return std::move(candidates_); }

 private:
  static std::string SinglePhaseOf(std::string_view family) {
    return fmt::format("single-phase:{}", family);
  }
  bool SinglePhase() const {
    return request_.kind == CollectiveKind::kAllReduce &&
           request_.operand_bytes <= config_.chip.compiler.single_phase_most_bytes;
  }
  void Finish(Algorithm& candidate) {
    if (request_.space == isa::MemorySpace::kHbm) {
      candidate.plan.memory = configs::HbmRate(config_.chip);
    }
    SetChunkBytes(request_, candidate.plan);
    candidate.expected = TimeOf(candidate.plan, config_.chip);
    candidates_.push_back(candidate);
  }

  const configs::Config& config_;
  const CollectiveRequest& request_;
  const Wanted& wanted_;
  std::vector<Algorithm> candidates_;
};

// Twice the orders, each once up and once down.
void AddOneWay(std::string_view family, const std::string& what,
               const std::vector<Dimension>& dimensions,
               const std::vector<std::vector<int>>& orders, CandidateCollector& collector,
               const std::vector<std::vector<int64_t>>& lists = {}) {
  std::vector<std::vector<int>> doubled = orders;
  doubled.insert(doubled.end(), orders.begin(), orders.end());
  std::vector<Way> ways(orders.size(), Way::kUp);
  ways.resize(doubled.size(), Way::kDown);
  collector.Add(family, fmt::format("{}-color one-way {}", doubled.size(), what), dimensions,
                doubled, lists, ways);
}

// The members of each group in the order of these positions of its box.
std::vector<std::vector<int64_t>> ListsOf(const configs::Config& config,
                                          const CollectiveRequest& request, const GroupForm& form,
                                          const std::vector<Position>& positions) {
  const configs::Topology& topology = config.topology;
  std::vector<std::vector<int64_t>> lists;
  for (size_t i = 0; i < form.groups.size(); ++i) {
    const Box& box = form.boxes[i];
    const auto index_of = [&box](const Position& position) {
      int64_t index = 0;
      for (size_t run = 0; run < box.runs.size(); ++run) {
        index = index * box.runs[run].n + position[run];
      }
      return static_cast<size_t>(index);
    };
    const std::vector<int64_t>& group = request.groups[form.groups[i]];
    std::vector<int64_t> member_at(group.size());
    for (const int64_t device : group) {
      member_at[index_of(PositionIn(topology, box, device))] = device;
    }
    std::vector<int64_t>& list = lists.emplace_back();
    list.reserve(positions.size());
    for (const Position& position : positions) list.push_back(member_at[index_of(position)]);
  }
  return lists;
}

bool AllRings(const std::vector<Dimension>& dimensions) {
  return std::ranges::all_of(dimensions, [](const Dimension& dimension) {
    return dimension.shape == Dimension::Shape::kRing && dimension.closes_after == 0;
  });
}

// Colors take the axes of the torus in turns, before them the way between slices
// and after them the way between the devices of a chip (as an all-gather goes; so
// slices exchange what is summed within them). Where slices exchange, one axis will do.
void AddRotated(const CollectiveRequest& request, const GroupForm& form,
                const std::vector<Dimension>& dimensions, CandidateCollector& collector) {
  const size_t axes = std::ranges::count_if(
      dimensions, [](const Dimension& dimension) { return dimension.axis < configs::kMaxAxes; });
  if (axes < 2 && !form.box->SpansSlices()) return;
  std::vector<int> order(dimensions.size());
  std::iota(order.begin(), order.end(), 0);
  std::vector<std::vector<int>> rotated;
  for (size_t i = 0; i < std::max<size_t>(axes, 1); ++i) {
    rotated.push_back(order);
    if (form.box->SpansSlices()) {
      std::rotate(rotated.back().begin(), rotated.back().end() - 1, rotated.back().end());
    }
    if (axes > 1) {
      std::rotate(order.begin(), order.begin() + 1, order.begin() + static_cast<int64_t>(axes));
    }
  }
  collector.Add("rotated", ManyDimensionName(dimensions, rotated, *form.box), dimensions, rotated);
  if (request.kind != CollectiveKind::kAllToAll && axes == dimensions.size() &&
      AllRings(dimensions)) {
    AddOneWay("unidirectional-rotated",
              fmt::format("{}-D ring {}", dimensions.size(), form.box->Extents()), dimensions,
              rotated, collector);
  }
}

void AddHamiltonian(const configs::Config& config, const CollectiveRequest& request,
                    const GroupForm& form, const std::vector<Dimension>& dimensions,
                    CandidateCollector& collector) {
  const std::vector<Position> cycle = HamiltonianCycle(*form.box);
  if (cycle.empty()) return;
  const auto lists = ListsOf(config, request, form, cycle);
  // It goes along every axis of the box and crosses no link twice: the slowest axis
  // sets its rate.
  const Dimension ring = {
      .shape = Dimension::Shape::kRing,
      .n = static_cast<int64_t>(cycle.size()),
      .rate = std::ranges::min_element(dimensions, [](const Dimension& a, const Dimension& b) {
                return a.rate < b.rate;
              })->rate};
  const std::string over = fmt::format("ring of {} over {}", cycle.size(), form.box->Extents());
  collector.Add("hamiltonian-ring", "Hamiltonian " + over, {ring}, {{0}}, lists);
  AddOneWay("unidirectional-hamiltonian-ring", "Hamiltonian " + over, {ring}, {{0}}, collector,
            lists);
}

void AddDirect(const configs::Config& config, const CollectiveRequest& request,
               const GroupForm& form, CandidateCollector& collector) {
  const int64_t n = form.box->members();
  const bool twisted = config.topology.twisted();
  const int64_t pairs = n * n * static_cast<int64_t>(form.groups.size());
  const Limit& most_members = twisted ? limits::kTwistedMembers : limits::kDirectMembers;
  const Limit& most_pairs = twisted ? limits::kTwistedPairs : limits::kDirectPairs;
  for (const auto& [limit, number] : {std::pair(&most_members, n), {&most_pairs, pairs}}) {
    if (number <= limit->most()) continue;
    limit->Reached();
    return;
  }
  std::vector<Position> positions(n);
  std::vector<int64_t> extents;
  int64_t weight = 1;
  for (size_t run = 0; run < form.box->runs.size(); ++run) {
    extents.push_back(form.box->runs[run].n);
    for (int64_t i = 0; i < n; ++i) positions[i][run] = i / weight % extents.back();
    weight *= extents.back();
  }
  const auto lists = ListsOf(config, request, form, positions);
  Dimension dimension = ScatteredDimension(config, lists);
  dimension.extents = extents;
  collector.Add("direct", fmt::format("direct exchange over {}", form.box->Extents()), {dimension},
                {{0}}, lists);
}

void AddBoxCandidates(const configs::Config& config, const CollectiveRequest& request,
                      const GroupForm& form, CandidateCollector& collector) {
  const bool exchange = request.kind == CollectiveKind::kAllToAll;
  std::vector<Dimension> dimensions;
  for (size_t i = 0; i < form.box->runs.size(); ++i) {
    dimensions.push_back(AxisDimension(config, request, form, i));
  }
  if (dimensions.size() == 1) {
    const bool ring = dimensions[0].shape == Dimension::Shape::kRing;
    collector.Add(ring ? "ring" : "line", OneDimensionName(dimensions[0]), dimensions, {{0}});
    if (ring && !exchange) {
      AddOneWay("unidirectional-ring", OneDimensionName(dimensions[0], "ring"), dimensions, {{0}},
                collector);
    }
    return;
  }
  AddRotated(request, form, dimensions, collector);
  if (collector.Wants("axis-by-axis")) {
    std::vector<int> order(dimensions.size());
    std::iota(order.begin(), order.end(), 0);
    do {
      collector.Add("axis-by-axis", ManyDimensionName(dimensions, {order}, *form.box), dimensions,
                    {order});
    } while (std::next_permutation(order.begin(), order.end()));
  }
  if (exchange) {
    if (collector.Wants("direct") && !form.box->SpansSlices()) {
      AddDirect(config, request, form, collector);
    }
  } else if (collector.Wants("hamiltonian-ring") ||
             collector.Wants("unidirectional-hamiltonian-ring")) {
    AddHamiltonian(config, request, form, dimensions, collector);
  }
}

}  // namespace

std::vector<GroupForm> FormsOf(const configs::Topology& topology,
                               const std::vector<std::vector<int64_t>>& groups) {
  std::vector<GroupForm> forms;
  std::optional<Box> box;
  for (size_t g = 0; g < groups.size(); ++g) {
    // Most groups are moved copies of the one before.
    if (box) box = MovedBox(topology, *box, groups[g - 1], groups[g]);
    if (!box) box = FindBox(topology, groups[g]);
    const auto same = std::ranges::find_if(forms, [&](const GroupForm& form) {
      return form.box.has_value() == box.has_value() && (!box || SameForm(*form.box, *box));
    });
    GroupForm& form = same != forms.end() ? *same : forms.emplace_back(GroupForm{box, {}, {}});
    form.groups.push_back(g);
    if (box) form.boxes.push_back(*box);
  }
  return forms;
}

std::vector<Algorithm> CandidatesFor(const configs::Config& config,
                                     const CollectiveRequest& request, const GroupForm& form,
                                     const Wanted& wanted) {
  CandidateCollector collector(config, request, wanted);
  if (form.box) {
    AddBoxCandidates(config, request, form, collector);
    return collector.Take();
  }
  std::vector<std::vector<int64_t>> lists;
  const bool exchange = request.kind == CollectiveKind::kAllToAll;
  for (const size_t g : form.groups) {
    lists.push_back(exchange ? request.groups[g]
                             : MinimumHopRing(config.topology, request.groups[g]));
  }
  if (exchange) {
    collector.Add("direct", fmt::format("direct exchange of {}", lists[0].size()),
                  {ScatteredDimension(config, lists)}, {{0}}, lists);
  } else {
    collector.Add("minimum-hop-ring", fmt::format("minimum-hop ring of {}", lists[0].size()),
                  {ListRing(config, lists)}, {{0}}, lists);
  }
  return collector.Take();
}

std::vector<Algorithm> AllReducesFor(const configs::Config& config,
                                     const CollectiveRequest& request, const GroupForm& form,
                                     const Wanted& wanted) {
  const bool gather = request.kind == CollectiveKind::kAllGather;
  if (!gather && request.kind != CollectiveKind::kReduceScatter) return {};
  const auto n = static_cast<int64_t>(request.groups[0].size());
  CollectiveRequest sum = request;
  sum.kind = CollectiveKind::kAllReduce;
  if (gather) sum.operand_bytes = request.operand_bytes * n;
  const auto prefixed = [](std::string_view family) {
    return fmt::format("as-all-reduce:{}", family);
  };
  std::vector<Algorithm> candidates = CandidatesFor(
      config, sum, form, [&](std::string_view family) { return wanted(prefixed(family)); });
  for (Algorithm& candidate : candidates) {
    candidate.family = prefixed(candidate.family);
    candidate.algorithm = fmt::format("all-reduce by {}", candidate.algorithm);
    Plan& plan = candidate.plan;
    if (gather) {
      plan.zeros_before = sum.operand_bytes;
      candidate.expected += timing::LocalCopy(config.chip, request.space, plan.zeros_before, 1);
    } else {
      plan.slice_after = Bytes(CeilDiv(request.operand_bytes.value(), n));
      candidate.expected += timing::LocalCopy(config.chip, request.space, plan.slice_after, 2);
    }
  }
  return candidates;
}

std::vector<Algorithm> GroupRingsFor(const configs::Config& config,
                                     const CollectiveRequest& request, const GroupForm& form,
                                     const Wanted& wanted) {
  CandidateCollector collector(config, request, wanted);
  if (request.kind == CollectiveKind::kAllToAll || !collector.Wants("group-ring")) return {};
  std::vector<std::vector<int64_t>> lists;
  for (const size_t g : form.groups) lists.push_back(request.groups[g]);
  const Dimension ring = ListRing(config, lists);
  collector.Add("group-ring", fmt::format("ring of {} in the order of the group", ring.n), {ring},
                {{0}}, lists);
  return collector.Take();
}

const std::vector<std::string>& Families() {
  static const auto* const families =
      new std::vector<std::string>{"ring",
                                   "line",
                                   "unidirectional-ring",
                                   "rotated",
                                   "unidirectional-rotated",
                                   "axis-by-axis",
                                   "hamiltonian-ring",
                                   "unidirectional-hamiltonian-ring",
                                   "minimum-hop-ring",
                                   "group-ring",
                                   "direct",
                                   "single-phase",
                                   "as-all-reduce"};
  return *families;
}

bool IsFamily(std::string_view name) {
  // "single-phase:ring" is a ring with a single phase.
  while (name.starts_with("single-phase:") || name.starts_with("as-all-reduce:")) {
    name.remove_prefix(name.find(':') + 1);
  }
  return std::find(Families().begin(), Families().end(), name) != Families().end();
}

std::vector<Position> PositionsOf(const configs::Topology& topology, const GroupForm& form,
                                  const Algorithm& candidate, size_t group_of_form,
                                  const std::vector<int64_t>& group) {
  std::vector<Position> positions(group.size());
  if (candidate.lists.empty()) {
    const Box& box = form.boxes[group_of_form];
    for (size_t i = 0; i < group.size(); ++i) positions[i] = PositionIn(topology, box, group[i]);
    return positions;
  }
  const std::vector<int64_t>& list = candidate.lists[group_of_form];
  std::map<int64_t, int64_t> place;
  for (size_t i = 0; i < list.size(); ++i) place[list[i]] = static_cast<int64_t>(i);
  for (size_t i = 0; i < group.size(); ++i) positions[i][0] = place.at(group[i]);
  return positions;
}

}  // namespace tpusim::collectives
