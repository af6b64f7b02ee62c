// The wires of a group, for its physical bound.
#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "workloads/lowering/collectives/candidates.h"

namespace tpusim::lowering {
namespace {

// In ascending order.
std::vector<int64_t> ChipsOf(const configs::Config& config, const std::vector<int64_t>& group) {
  std::vector<int64_t> chips = group;
  for (int64_t& chip : chips) chip /= config.topology.devices_per_chip();
  std::sort(chips.begin(), chips.end());
  chips.erase(std::unique(chips.begin(), chips.end()), chips.end());
  return chips;
}

std::set<int64_t> SlicesOf(const configs::Config& config, const std::vector<int64_t>& chips) {
  std::set<int64_t> slices;
  for (const int64_t chip : chips) slices.insert(config.topology.SliceOf(chip));
  return slices;
}

// Inside a contiguous box the group uses its own links only. The devices of a
// chip count as one member: what they exchange crosses no link. Of several slices
// the wires are those of one.
timing::GroupWires BoxWires(const Box& box) {
  timing::GroupWires wires;
  wires.n = 1;
  for (const AxisRun& run : box.runs) wires.n *= run.axis < configs::kMaxAxes ? run.n : 1;
  for (const AxisRun& run : box.runs) {
    if (run.axis >= configs::kMaxAxes) continue;
    const int64_t lanes = wires.n / run.n;
    wires.links += lanes * (run.ring ? 2 * run.n : 2 * (run.n - 1));
    wires.fewest_links += run.ring ? 2 : 1;
    // Hops between all ordered pairs of a lane: a line has n(n^2-1)/3, a ring n
    // times n^2/4 or (n^2-1)/4; each occurs for every pair of lanes.
    const int64_t in_lane =
        run.ring ? run.n * (run.n * run.n / 4) : run.n * (run.n * run.n - 1) / 3;
    wires.total_distance += lanes * lanes * in_lane;
    // Planes: one at the end (all but one layer has to come in), one in the
    // middle. A ring has to be cut twice.
    for (const int64_t layers : {int64_t{1}, run.n / 2}) {
      wires.cuts.push_back({.links = lanes * (run.ring ? 2 : 1), .members = lanes * layers});
    }
  }
  return wires;
}

timing::GroupWires WiresOf(const configs::Config& config, const GroupForm& form,
                           const std::vector<int64_t>& group) {
  timing::GroupWires wires;
  wires.nominal = config.chip.ici.link_bytes_per_second;
  const std::vector<int64_t> chips = ChipsOf(config, group);
  const bool slices = SlicesOf(config, chips).size() > 1;
  if (chips.size() == 1) {
    // Each device of the chip has one way in.
    wires.n = static_cast<int64_t>(group.size());
    wires.links = wires.n;
    wires.fewest_links = 1;
    wires.nominal = config.chip.ici.die_to_die_bytes_per_second;
  } else if (form.box && form.box->contiguous() && !config.topology.twisted()) {
    wires = BoxWires(*form.box);
    wires.nominal = config.chip.ici.link_bytes_per_second;
  } else {
    // Routes may lead through chips of other groups; but what a chip receives
    // comes over one of its own links.
    wires.n = static_cast<int64_t>(chips.size());
    wires.fewest_links = configs::kDirections;
    for (const int64_t chip : chips) {
      int64_t links = 0;
      for (int d = 0; d < configs::kDirections; ++d) {
        links += config.topology.HasLink(chip, static_cast<configs::Direction>(d)) ? 1 : 0;
      }
      wires.links += links;
      wires.fewest_links = std::min(wires.fewest_links, links);
    }
    // All chips of a twisted torus look alike: the distances from one say all.
    if (config.topology.twisted() && wires.n == config.topology.chips()) {
      for (const int64_t chip : chips) {
        wires.total_distance += wires.n * config.topology.Distance(chips[0], chip);
      }
    }
  }
  // What goes by way of another slice spares the links, as far as PCIe lets it.
  if (slices) wires.nominal = wires.nominal + config.chip.host.pcie_bytes_per_second;
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

}  // namespace

Picoseconds BoundOf(const configs::Config& config, const CollectiveRequest& request,
                    const GroupForm& form, Bytes v) {
  const auto bound_of = [&](const std::vector<int64_t>& group, int64_t times) {
    const timing::GroupWires wires = WiresOf(config, form, group);
    // Devices of one chip count as one member, which exchanges what all of them do.
    if (request.kind == CollectiveKind::kAllToAll) {
      times *= std::max<int64_t>(1, static_cast<int64_t>(group.size()) / wires.n);
    }
    return BoundOf(request.kind, v * times, wires);
  };
  // Groups of other devices of the same chips need the same wires.
  const bool shared = config.topology.devices_per_chip() > 1;
  if (form.box && form.box->contiguous()) {
    // All groups have equal wires.
    std::map<std::vector<int64_t>, int64_t> boxes_at;
    int64_t most = 1;
    for (size_t i = 0; shared && i < form.boxes.size(); ++i) {
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
    return bound_of(request.groups[form.groups[0]], most);
  }
  std::map<std::vector<int64_t>, int64_t> groups_on;
  for (size_t g = 0; shared && g < request.groups.size(); ++g) {
    ++groups_on[ChipsOf(config, request.groups[g])];
  }
  Picoseconds bound(0);
  for (const size_t g : form.groups) {
    const std::vector<int64_t>& group = request.groups[g];
    bound = std::max(bound, bound_of(group, shared ? groups_on.at(ChipsOf(config, group)) : 1));
  }
  return bound;
}

// Each slice counts as one member, with one wire: the network cards of its hosts
// together, or PCIe of its chips. All groups of the same slices share them.
Picoseconds DcnBoundOf(const configs::Config& config, const CollectiveRequest& request,
                       const GroupForm& form, Bytes v) {
  const configs::Topology& topology = config.topology;
  if (topology.slices() == 1) return Picoseconds(0);
  struct Load {
    int64_t groups = 0;
    int64_t devices_per_slice = 0;
  };
  std::map<std::set<int64_t>, Load> loads;
  for (const size_t g : form.groups) {
    const std::set<int64_t> slices = SlicesOf(config, ChipsOf(config, request.groups[g]));
    const int64_t members = static_cast<int64_t>(request.groups[g].size());
    Load& load = loads[slices];
    ++load.groups;
    load.devices_per_slice = CeilDiv(members, static_cast<int64_t>(slices.size()));
  }
  const auto chips = static_cast<double>(topology.ChipsPerSlice());
  const configs::HostParams& host = config.chip.host;
  Picoseconds bound(0);
  for (const auto& [slices, load] : loads) {
    timing::GroupWires wires;
    wires.n = static_cast<int64_t>(slices.size());
    wires.links = wires.n;
    wires.fewest_links = 1;
    wires.cuts = {{.links = 1, .members = 1}};
    wires.nominal = std::min(host.dcn_bytes_per_second, host.pcie_bytes_per_second) * chips;
    Bytes all = v * load.groups;
    // Every device of the slice has as much to send.
    if (request.kind == CollectiveKind::kAllToAll) all = all * load.devices_per_slice;
    bound = std::max(bound, BoundOf(request.kind, all, wires));
  }
  return bound;
}

}  // namespace tpusim::lowering
