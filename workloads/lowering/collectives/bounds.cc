// The wires of a group, for its physical bound.
#include <algorithm>

#include "workloads/lowering/collectives/choice.h"

namespace tpusim::lowering {
namespace {

// Inside a contiguous box the group uses its own links only.
timing::GroupWires BoxWires(const Box& box) {
  timing::GroupWires wires;
  wires.n = box.members();
  for (const AxisRun& run : box.runs) {
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

}  // namespace

timing::GroupWires WiresOf(const configs::Config& config, const GroupForm& form,
                           const std::vector<int64_t>& group) {
  timing::GroupWires wires;
  if (form.box && form.box->contiguous()) {
    wires = BoxWires(*form.box);
  } else {
    // Routes may lead through chips of other groups; but what a member receives
    // comes over one of its own links.
    wires.n = static_cast<int64_t>(group.size());
    wires.fewest_links = configs::kDirections;
    for (const int64_t chip : group) {
      int64_t links = 0;
      for (int d = 0; d < configs::kDirections; ++d) {
        links += config.topology.HasLink(chip, static_cast<configs::Direction>(d)) ? 1 : 0;
      }
      wires.links += links;
      wires.fewest_links = std::min(wires.fewest_links, links);
    }
  }
  wires.nominal = config.chip.ici.link_bytes_per_second;
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

}  // namespace tpusim::lowering
