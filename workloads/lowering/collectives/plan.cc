#include "workloads/lowering/collectives/plan.h"

#include <algorithm>

#include "configs/status_macros.h"

namespace tpusim::lowering {
namespace {

// What the device holds of one colour when it comes to lane `phase` of the order.
Pieces HeldAt(const Plan& plan, const Position& position, int colour, size_t phase) {
  Pieces held;
  held.colour = colour;
  held.summed = plan.single_phase;
  const bool exchange = plan.kind == CollectiveKind::kAllToAll;
  for (size_t i = 0; i < plan.orders[colour].size(); ++i) {
    const int lane = plan.orders[colour][i];
    const Range own = {position[lane], 1};
    const Range all = {0, plan.lanes[lane].n};
    held.origin[lane] = i < phase ? all : own;
    if (exchange) held.destination[lane] = i < phase ? own : all;
  }
  return held;
}

Bytes AtomOf(const CollectiveRequest& request, const Plan& plan, Bytes shard) {
  const int64_t parts = static_cast<int64_t>(plan.orders.size()) * plan.halves;
  return Bytes(RoundUp(CeilDiv(shard.value(), parts), std::max<int64_t>(1, request.element_bytes)));
}

// Of all destinations of the pieces, from one origin.
Bytes AtomsOfDestinations(const Plan& plan, const Pieces& pieces, const std::vector<Bytes>& atoms) {
  Bytes sum(0);
  Position offset = {};
  while (true) {
    Position at = {};
    for (size_t lane = 0; lane < plan.lanes.size(); ++lane) {
      at[lane] = (pieces.destination[lane].first + offset[lane]) % plan.lanes[lane].n;
    }
    sum += atoms[NumberOf(plan, at)];
    size_t lane = 0;
    while (lane < plan.lanes.size() && ++offset[lane] >= pieces.destination[lane].count) {
      offset[lane++] = 0;
    }
    if (lane == plan.lanes.size()) return sum;
  }
}

}  // namespace

int64_t Plan::members() const {
  int64_t product = 1;
  for (const Lane& lane : lanes) product *= lane.n;
  return product;
}

Lane Plan::LaneAt(size_t colour, size_t phase) const {
  Lane lane = lanes[orders[colour][phase]];
  for (size_t i = 0; i < phase; ++i) lane.closes_after &= ~(1U << orders[colour][i]);
  if (lane.closes_after != 0) lane.shape = Lane::Shape::kLine;
  return lane;
}

void SetAtom(const CollectiveRequest& request, Plan& plan) {
  plan.halves = 1;
  // One way there is nothing to halve.
  for (const Lane& lane : plan.lanes) {
    if (plan.ways.empty()) plan.halves = std::max(plan.halves, lane.halves());
  }
  const bool whole = plan.kind == CollectiveKind::kAllGather || plan.single_phase;
  Bytes shard =
      whole ? request.operand_bytes : Bytes(CeilDiv(request.operand_bytes.value(), plan.members()));
  // The closed form of parts that differ: as if all were like the largest.
  for (const Bytes part : request.parts) shard = std::max(shard, part);
  plan.atom = AtomOf(request, plan, shard);
}

int64_t NumberOf(const Plan& plan, const Position& position) {
  int64_t number = 0;
  for (size_t lane = 0; lane < plan.lanes.size(); ++lane) {
    number = number * plan.lanes[lane].n + position[lane];
  }
  return number;
}

std::vector<Bytes> AtomsFor(const CollectiveRequest& request, const Plan& plan,
                            const std::vector<Position>& positions) {
  std::vector<Bytes> atoms(request.parts.size(), Bytes(0));
  for (size_t member = 0; member < request.parts.size(); ++member) {
    atoms[NumberOf(plan, positions[member])] = AtomOf(request, plan, request.parts[member]);
  }
  return atoms;
}

DeviceSteps StepsAt(const Plan& plan, const Position& position) {
  const bool exchange = plan.kind == CollectiveKind::kAllToAll;
  DeviceSteps steps;
  for (size_t phase = 0; phase < plan.lanes.size(); ++phase) {
    DeviceSteps together;
    for (size_t colour = 0; colour < plan.orders.size(); ++colour) {
      const int index = plan.orders[colour][phase];
      const Lane lane = plan.LaneAt(colour, phase);
      const Pieces held = HeldAt(plan, position, static_cast<int>(colour), phase);
      DeviceSteps one = exchange ? AllToAllSteps(lane, index, held)
                                 : AllGatherSteps(lane, index, held, plan.WayOf(colour));
      if (colour == 0) {
        together = std::move(one);
      } else {
        MergeInto(together, one);
      }
    }
    steps.insert(steps.end(), together.begin(), together.end());
  }
  if (plan.single_phase) {
    for (DeviceStep& step : steps) {
      for (Move& move : step.sends) move.reduce = true;
      for (Move& move : step.receives) move.reduce = true;
    }
    return steps;
  }
  if (plan.kind == CollectiveKind::kReduceScatter) return Mirrored(steps);
  if (plan.kind == CollectiveKind::kAllReduce) {
    DeviceSteps both = Mirrored(steps);
    both.insert(both.end(), steps.begin(), steps.end());
    return both;
  }
  return steps;
}

Bytes BytesOf(const Plan& plan, const Move& move, const std::vector<Bytes>& atoms) {
  int64_t equal = 0;
  Bytes bytes(0);
  for (const Pieces& pieces : move.pieces) {
    if (atoms.empty()) {
      equal += AtomsOf(pieces, plan.halves);
      continue;
    }
    Pieces origins = pieces;
    for (int lane = 0; lane < kMaxLanes; ++lane) origins.destination[lane] = {0, 1};
    bytes += AtomsOfDestinations(plan, pieces, atoms) * AtomsOf(origins, plan.halves);
  }
  return bytes + plan.atom * equal;
}

Picoseconds TimeOf(const Plan& plan, const configs::IciParams& ici) {
  TPUSIM_CHECK(plan.kind != CollectiveKind::kPermute, "a permutation has no lanes");
  const bool exchange = plan.kind == CollectiveKind::kAllToAll;
  Picoseconds time(0);
  std::vector<Bytes> bundles(plan.orders.size(), plan.atom * plan.halves);
  for (size_t phase = 0; phase < plan.lanes.size(); ++phase) {
    // The colours wait for each other after every step. Mostly they are equally
    // long, and the first stands for all.
    const bool alike = std::all_of(plan.orders.begin(), plan.orders.end(), [&](const auto& order) {
      const size_t colour = &order - plan.orders.data();
      return plan.LaneAt(colour, phase).SameSpeed(plan.LaneAt(0, phase));
    });
    std::vector<Picoseconds> steps;
    for (size_t colour = 0; colour < plan.orders.size(); ++colour) {
      const Lane lane = plan.LaneAt(colour, phase);
      const Bytes block = bundles[colour] * (exchange ? plan.members() / lane.n : 1);
      if (alike && colour == 0) {
        time += exchange ? AllToAllTime(lane, block, ici.hop_latency)
                         : AllGatherTime(lane, block, ici.hop_latency, plan.WayOf(0));
      } else if (!alike) {
        const std::vector<Picoseconds> one =
            exchange ? AllToAllStepTimes(lane, block, ici.hop_latency)
                     : AllGatherStepTimes(lane, block, ici.hop_latency, plan.WayOf(colour));
        steps.resize(std::max(steps.size(), one.size()), Picoseconds(0));
        for (size_t i = 0; i < one.size(); ++i) steps[i] = std::max(steps[i], one[i]);
      }
      if (!exchange && !plan.single_phase) bundles[colour] = bundles[colour] * lane.n;
    }
    for (const Picoseconds step : steps) time += step;
  }
  if (plan.kind == CollectiveKind::kAllReduce && !plan.single_phase) time = time * 2;
  return ici.launch + time;
}

}  // namespace tpusim::lowering
