// Lower bounds of collectives, which no algorithm can beat.
//
// Three arguments, each about all groups of a request at once, since they run at
// once. With v bytes (V of models/timing/collective_timing.h) per group:
//
// Sides. Draw a line round some devices of a group of N, M of them inside. Whatever
// the algorithm, the group makes so many bytes cross the line inwards (and, by time
// reversal or symmetry, as many outwards):
//   all-reduce                  v: the sum of the others has v bytes
//   all-gather                  v (N-M)/N in and v M/N out; a reduce-scatter the
//                               other way round
//   all-to-all                  v/N for each of the M (N-M) pairs
// A line round a chip, a slice, or half of a box: the bytes of all groups, over the
// wires that cross it. Members that are spread unevenly over chips make no difference.
//
// Receptions. Every byte of an all-reduce over n chips is received 2(n-1) times, and
// what the sides receive in the other kinds adds up: over all links that end at one of
// the chips.
//
// Distances. Bytes of an all-to-all between chips d hops apart occupy d links.
//
// The devices of a chip exchange what they have over links of their own, so for the
// links of the torus a chip is one member. Between slices there is a way besides the
// links, PCIe to the network; it adds to what a chip can receive.
#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "workloads/collectives/candidates.h"

namespace tpusim::collectives {
namespace {

// The shortest ways between members of the box stay in it: of an axis that closes, it
// takes all or less than half. Then the group uses the links of its box only.
bool KeepsToItself(const configs::Topology& topology, const Box& box) {
  if (!box.contiguous() || topology.twisted()) return false;
  return std::ranges::all_of(box.runs, [&](const AxisRun& run) {
    if (run.axis >= configs::kMaxAxes || run.ring || !topology.wraps(run.axis)) return true;
    return 2 * (run.n - 1) < topology.shape()[run.axis];
  });
}

// Returns the wires of such a box. The devices of a chip count as one member: what they exchange
// crosses no link. Of several slices the wires are those of one.
timing::GroupWires BoxWires(const Box& box) {
  timing::GroupWires wires;
  wires.n = 1;
  for (const AxisRun& run : box.runs) wires.n *= run.axis < configs::kMaxAxes ? run.n : 1;
  for (const AxisRun& run : box.runs) {
    if (run.axis >= configs::kMaxAxes) continue;
    const int64_t dimensions = wires.n / run.n;
    wires.links += dimensions * (run.ring ? 2 * run.n : 2 * (run.n - 1));
    wires.fewest_links += run.ring ? 2 : 1;
    // Hops between all ordered pairs of a dimension: a line has n(n^2-1)/3, a ring n
    // times n^2/4 or (n^2-1)/4; each occurs for every pair of dimensions.
    const int64_t in_lane =
        // number: hops between all pairs, a closed sum
        run.ring ? run.n * (run.n * run.n / 4) : run.n * (run.n * run.n - 1) / 3;
    wires.total_distance += dimensions * dimensions * in_lane;
    // Planes: one at the end (all but one layer has to come in), one in the
    // middle. A ring has to be cut twice.
    for (const int64_t layers : {int64_t{1}, run.n / 2}) {
      wires.cuts.push_back(
          {.links = dimensions * (run.ring ? 2 : 1), .members = dimensions * layers});
    }
  }
  return wires;
}

Picoseconds BoundOf(CollectiveKind kind, Bytes v, const timing::GroupWires& wires) {
  switch (kind) {
    case CollectiveKind::kAllReduce:
      return timing::AllReduceBound(v, wires);
    case CollectiveKind::kAllGather:
      return timing::AllGatherBound(v, wires);
    case CollectiveKind::kReduceScatter:
      return timing::ReduceScatterBound(v, wires);
    case CollectiveKind::kAllToAll:
      return timing::AllToAllBound(v, wires);
    case CollectiveKind::kPermute:
      break;
  }
  return Picoseconds(0);
}

// Bytes that cross the line round `inside` of the `all` members of a group.
struct CutBytes {
  double in = 0, out = 0;
};
CutBytes CrossingOf(CollectiveKind kind, double v, int64_t inside, int64_t all) {
  if (inside == 0 || inside == all) return {};
  const double m = static_cast<double>(inside), n = static_cast<double>(all);
  switch (kind) {
    case CollectiveKind::kAllReduce:
      return {v, v};
    case CollectiveKind::kAllGather:
      return {v * (n - m) / n, v * m / n};
    case CollectiveKind::kReduceScatter:
      return {v * m / n, v * (n - m) / n};
    case CollectiveKind::kAllToAll:
      return {v * m * (n - m) / n, v * m * (n - m) / n};
    case CollectiveKind::kPermute:
      break;
  }
  return {};
}

// The spread of a group's members over chips, or over slices: members by place, in the order of
// places.
using Spread = std::vector<std::pair<int64_t, int64_t>>;

// `place_of` says where a device is.
template <typename PlaceOf>
Spread SpreadOf(const std::vector<int64_t>& group, PlaceOf place_of) {
  std::vector<int64_t> places;
  places.reserve(group.size());
  for (const int64_t device : group) places.push_back(place_of(device));
  if (!std::ranges::is_sorted(places)) std::ranges::sort(places);
  Spread spread;
  for (const int64_t place : places) {
    if (spread.empty() || spread.back().first != place) spread.emplace_back(place, 0);
    ++spread.back().second;
  }
  return spread;
}

// Returns the bytes that the members at all places of a group receive together.
double Receptions(CollectiveKind kind, double v, const Spread& spread, int64_t all) {
  if (spread.size() < 2) return 0;
  if (kind == CollectiveKind::kAllReduce) return 2 * v * static_cast<double>(spread.size() - 1);
  double sum = 0;
  for (const auto& [place, members] : spread) {
    const double others = static_cast<double>(all - members) / static_cast<double>(all);
    sum += v * others * static_cast<double>(kind == CollectiveKind::kAllToAll ? members : 1);
  }
  return sum;
}

// Seconds that sides and receptions take at places that receive `rate(place)` bytes
// per second.
class PlaceBound {
 public:
  PlaceBound(CollectiveKind kind, Bytes v, int64_t places)
      : kind_(kind), v_(static_cast<double>(v.value())), crossing_(static_cast<size_t>(places)) {}

  void Add(const Spread& spread, int64_t all) {
    for (const auto& [place, members] : spread) {
      const CutBytes crossing = CrossingOf(kind_, v_, members, all);
      crossing_[place].in += crossing.in;
      crossing_[place].out += crossing.out;
    }
    receptions_ += Receptions(kind_, v_, spread, all);
  }
  template <typename Rate>
  double Seconds(Rate rate) const {
    double worst = 0, total = 0;
    for (size_t place = 0; place < crossing_.size(); ++place) {
      const double bytes = std::max(crossing_[place].in, crossing_[place].out);
      if (bytes == 0) continue;
      const double at = rate(static_cast<int64_t>(place));
      total += at;
      if (at > 0) worst = std::max(worst, bytes / at);
    }
    return total > 0 ? std::max(worst, receptions_ / total) : worst;
  }

 private:
  const CollectiveKind kind_;
  const double v_;
  std::vector<CutBytes> crossing_;  // by place
  double receptions_ = 0;
};

Spread ChipsOf(const configs::Config& config, const std::vector<int64_t>& group) {
  const int64_t per_chip = config.topology.devices_per_chip();
  return SpreadOf(group, [=](int64_t device) { return device / per_chip; });
}

Spread SlicesOf(const configs::Config& config, const std::vector<int64_t>& group) {
  const configs::Topology& topology = config.topology;
  return SpreadOf(group, [&](int64_t device) {
    return topology.SliceOf(device / topology.devices_per_chip());
  });
}

// Groups whose routes may lead anywhere: what a chip receives comes over one of its
// links, or from the host if the group spans slices.
double ScatteredBound(const configs::Config& config, const CollectiveRequest& request, Bytes v) {
  PlaceBound places(request.kind, v, config.topology.chips());
  bool slices = false;
  for (const std::vector<int64_t>& group : request.groups) {
    places.Add(ChipsOf(config, group), static_cast<int64_t>(group.size()));
    slices = slices || (config.topology.slices() > 1 && SlicesOf(config, group).size() > 1);
  }
  return places.Seconds([&](int64_t chip) {
    double rate = slices ? config.chip.host.pcie_bytes_per_second.value() : 0;
    for (int d = 0; d < configs::kDirections; ++d) {
      if (!config.topology.HasLink(chip, static_cast<configs::Direction>(d))) continue;
      rate += config.chip.ici.link_bytes_per_second.value();
    }
    return rate;
  });
}

// Several slices, of each the same box: the planes that cut it, with the hosts of the
// chips on the side as a way round.
double CutsOfSlices(const configs::Config& config, const CollectiveRequest& request, const Box& box,
                    Bytes v) {
  const timing::GroupWires wires = BoxWires(box);
  const int64_t all = box.members();
  const int64_t slices = SlicesOf(config, request.groups[0]).size();
  const int64_t per_chip = all / (wires.n * slices);
  double worst = 0;
  for (const timing::GroupCut& cut : wires.cuts) {
    const double rate =
        static_cast<double>(cut.links) * config.chip.ici.link_bytes_per_second.value() +
        static_cast<double>(cut.members) * config.chip.host.pcie_bytes_per_second.value();
    const CutBytes crossing =
        CrossingOf(request.kind, static_cast<double>(v.value()), cut.members * per_chip, all);
    worst = std::max(worst, std::max(crossing.in, crossing.out) / rate);
  }
  return worst;
}

// Counts the groups of the form that lie on the same chips, devices of which they share out: their
// wires are the same.
int64_t GroupsOnEqualChips(const configs::Config& config, const CollectiveRequest& request,
                           const GroupForm& form) {
  if (config.topology.devices_per_chip() == 1) return 1;
  std::map<std::vector<int64_t>, int64_t> boxes_at;
  int64_t most = 1;
  for (size_t i = 0; i < form.boxes.size(); ++i) {
    // Where an axis has no run, all members are at one place of it.
    const int64_t chip = request.groups[form.groups[i]][0] / config.topology.devices_per_chip();
    const configs::Coordinates at = config.topology.At(chip);
    std::vector<int64_t> place(at.at.begin(), at.at.end());
    for (const AxisRun& run : form.boxes[i].runs) {
      if (run.axis < configs::kMaxAxes) place[run.axis] = run.first;
    }
    place.push_back(form.box->SpansSlices() ? -1 : config.topology.SliceOf(chip));
    most = std::max(most, ++boxes_at[place]);
  }
  return most;
}

}  // namespace

Picoseconds BoundOf(const configs::Config& config, const CollectiveRequest& request,
                    const GroupForm& form, Bytes v) {
  const configs::Topology& topology = config.topology;
  const BytesPerSecond link = config.chip.ici.link_bytes_per_second;
  const auto& group = request.groups[form.groups[0]];
  const Spread chips = ChipsOf(config, group);
  const auto n = static_cast<int64_t>(chips.size());
  if (form.box && n == 1) {
    // Each device of the chip has one way in.
    timing::GroupWires wires;
    wires.n = static_cast<int64_t>(group.size());
    wires.links = wires.n;
    wires.fewest_links = 1;
    wires.nominal = config.chip.ici.die_to_die_bytes_per_second;
    return BoundOf(request.kind, v, wires);
  }
  double seconds = ScatteredBound(config, request, v);
  if (form.box && KeepsToItself(topology, *form.box)) {
    const int64_t times = GroupsOnEqualChips(config, request, form);
    if (form.box->SpansSlices()) {
      seconds = std::max(seconds, CutsOfSlices(config, request, *form.box, v * times));
    } else {
      timing::GroupWires wires = BoxWires(*form.box);
      wires.nominal = link;
      // As one member, a chip exchanges what all its devices do.
      const int64_t per_chip = static_cast<int64_t>(group.size()) / wires.n;
      const Bytes all = request.kind == CollectiveKind::kAllToAll ? v * per_chip : v;
      return std::max(FromSeconds(seconds), BoundOf(request.kind, all * times, wires));
    }
  } else if (topology.twisted() && n == topology.chips() &&
             request.kind == CollectiveKind::kAllToAll) {
    // All chips of a twisted torus look alike: the distances from one say all.
    int64_t hops = 0;
    for (const auto& [chip, members] : chips) hops += topology.Distance(chips.begin()->first, chip);
    const auto per_chip = static_cast<double>(group.size()) / static_cast<double>(n);
    const double per_pair =
        static_cast<double>(v.value()) / static_cast<double>(group.size()) * per_chip * per_chip;
    seconds = std::max(seconds, per_pair * static_cast<double>(n * hops) /
                                    static_cast<double>(topology.AllLinks().size()) / link.value());
  }
  return FromSeconds(seconds);
}

// Each slice counts as one member, with one wire: the network cards of its hosts
// together, or PCIe of its chips.
Picoseconds DcnBoundOf(const configs::Config& config, const CollectiveRequest& request,
                       const GroupForm& form, Bytes v) {
  if (config.topology.slices() == 1) return Picoseconds(0);
  PlaceBound places(request.kind, v, config.topology.slices());
  for (const size_t g : form.groups) {
    const std::vector<int64_t>& group = request.groups[g];
    places.Add(SlicesOf(config, group), static_cast<int64_t>(group.size()));
  }
  const configs::HostParams& host = config.chip.host;
  const double rate = std::min(host.dcn_bytes_per_second, host.pcie_bytes_per_second).value() *
                      static_cast<double>(config.topology.ChipsPerSlice());
  return FromSeconds(places.Seconds([rate](int64_t) { return rate; }));
}

}  // namespace tpusim::collectives
