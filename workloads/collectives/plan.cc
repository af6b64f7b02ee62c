#include "workloads/collectives/plan.h"

#include <algorithm>

#include "configs/status_macros.h"
#include "workloads/collectives/slots.h"

namespace tpusim::collectives {
namespace {

Bytes AtomOf(const CollectiveRequest& request, const Plan& plan, Bytes shard, size_t colour) {
  int64_t parts = plan.halves;
  if (plan.weights.empty()) {
    parts *= static_cast<int64_t>(plan.orders.size());
  } else {
    // In two steps, as shard * weight may be too large for an integer.
    const int64_t weight = plan.weights[colour];
    shard = Bytes(shard.value() / kWholeWeight * weight +
                  CeilDiv(shard.value() % kWholeWeight * weight, kWholeWeight));
  }
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

void SetAtoms(const CollectiveRequest& request, Plan& plan) {
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
  plan.atoms.clear();
  for (size_t colour = 0; colour < plan.orders.size(); ++colour) {
    plan.atoms.push_back(AtomOf(request, plan, shard, colour));
  }
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
  TPUSIM_CHECK(request.parts.empty() || plan.weights.empty(), "parts that differ, with weights");
  std::vector<Bytes> atoms(request.parts.size(), Bytes(0));
  for (size_t member = 0; member < request.parts.size(); ++member) {
    atoms[NumberOf(plan, positions[member])] = AtomOf(request, plan, request.parts[member], 0);
  }
  return atoms;
}

DeviceSteps StepsAt(const Plan& plan, const Position& position) {
  DeviceSteps steps = SlottedSteps(plan, position);
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
  Bytes bytes(0);
  for (const Pieces& pieces : move.pieces) {
    if (atoms.empty()) {
      bytes += plan.atoms[pieces.colour] * AtomsOf(pieces, plan.halves);
      continue;
    }
    Pieces origins = pieces;
    for (int lane = 0; lane < kMaxLanes; ++lane) origins.destination[lane] = {0, 1};
    bytes += AtomsOfDestinations(plan, pieces, atoms) * AtomsOf(origins, plan.halves);
  }
  return bytes;
}

Picoseconds TimeOf(const Plan& plan, const configs::IciParams& ici) {
  TPUSIM_CHECK(plan.kind != CollectiveKind::kPermute, "a permutation has no lanes");
  Picoseconds time(0);
  const bool scatters = plan.kind == CollectiveKind::kReduceScatter;
  if (scatters || plan.kind == CollectiveKind::kAllReduce) {
    time += SlottedTime(plan, /*sums=*/true);
  }
  if (!scatters && !plan.single_phase) time += SlottedTime(plan, /*sums=*/false);
  return ici.launch + time;
}

}  // namespace tpusim::collectives
