#include "workloads/spmd/refit.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <utility>

#include "configs/units.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/spmd/emit/emit.h"
#include "workloads/spmd/limits.h"
#include "workloads/spmd/reshard.h"

namespace tpusim::spmd {
namespace {

using hlo::Instruction;
using hlo::PrimitiveType;
using sharding::Axes;
using sharding::Mesh;

Axes AllAxes(const Mesh& mesh) {
  Axes axes;
  for (size_t a = 0; a < mesh.axes.size(); ++a) {
    axes.push_back(sharding::FullAxis(mesh, static_cast<int32_t>(a)));
  }
  return axes;
}

// Links between two positions; axes may or may not be rings, so no path goes round.
int64_t Distance(const Mesh& mesh, const Axes& axes, int64_t a, int64_t b) {
  int64_t links = 0;
  for (const sharding::AxisRef& axis : axes) {
    links += std::abs(ShardIndex(mesh, {axis}, a) - ShardIndex(mesh, {axis}, b));
  }
  return links;
}

// s32[]: the entry of this device.
Instruction* EntryOfDevice(Builder& builder, const std::vector<int64_t>& table) {
  if (std::ranges::all_of(table, [&](int64_t v) { return v == table[0]; })) {
    return builder.Constant(PrimitiveType::kS32, table[0]);
  }
  return EntryOfShard(builder, AllAxes(builder.mesh()), table);
}

}  // namespace

std::optional<Refit> RefitOf(const Mesh& mesh, const Axes& before, const Axes& after,
                             int64_t size) {
  const int64_t n = mesh.size();
  const Axes all = AllAxes(mesh);
  Refit refit;
  refit.block_before = CeilDiv(size, Product(before));
  refit.block_after = CeilDiv(size, Product(after));
  const auto add_round = [&] {
    RefitRound round;
    for (auto* table : {&round.start, &round.low, &round.high, &round.place}) table->assign(n, 0);
    refit.rounds.push_back(std::move(round));
  };
  add_round();
  // Devices that differ along these axes, or parts of axes, only may send to each other: others
  // have other parts of the array's other dimensions.
  Axes parts = all, parts_before = before, parts_after = after;
  if (!sharding::CutAlike({&parts, &parts_before, &parts_after})) return std::nullopt;
  std::vector<int64_t> group(n), held(n);
  std::map<std::pair<int64_t, int64_t>, std::vector<int64_t>> holders;  // of a shard, in a group
  int64_t looked_at = 0;                                                // pairs of devices
  for (int64_t p = 0; p < n; ++p) {
    for (const sharding::AxisRef& axis : parts) {
      if (Contains(parts_before, axis) || Contains(parts_after, axis)) continue;
      group[p] = group[p] * axis.size + ShardIndex(mesh, {axis}, p);
    }
    held[p] = ShardIndex(mesh, before, p);
    holders[{group[p], held[p]}].push_back(p);
  }
  std::vector<std::vector<char>> sends(1, std::vector<char>(n)), receives = sends;
  std::vector<std::vector<int64_t>> begins(1, std::vector<int64_t>(n));  // of the piece, overall
  for (int64_t p = 0; p < n; ++p) {
    const int64_t first = ShardIndex(mesh, after, p) * refit.block_after;
    const int64_t limit = std::min(first + refit.block_after, size);
    for (int64_t s = first / refit.block_before; first < limit && s * refit.block_before < limit;
         ++s) {
      const int64_t begin = std::max(first, s * refit.block_before);
      const int64_t end = std::min(limit, (s + 1) * refit.block_before);
      size_t r = 0;
      int64_t from = p;
      if (s != held[p]) {
        std::vector<std::pair<int64_t, int64_t>> senders;  // nearest first
        const std::vector<int64_t>& have = holders[{group[p], s}];
        looked_at += std::ssize(have);
        if (looked_at > limits::kRefitPairs.most()) {
          limits::kRefitPairs.Reached();
          return std::nullopt;
        }
        for (const int64_t q : have) senders.emplace_back(Distance(mesh, all, p, q), q);
        std::ranges::sort(senders);
        from = -1;
        for (r = 1; from < 0; ++r) {
          if (std::cmp_greater(r, limits::kRefitRounds.most())) {
            limits::kRefitRounds.Reached();
            return std::nullopt;
          }
          if (r == refit.rounds.size()) {
            add_round();
            sends.emplace_back(n), receives.emplace_back(n), begins.emplace_back(n);
          }
          if (receives[r][p]) continue;
          for (const auto& [links, q] : senders) {
            if (sends[r][q]) continue;
            from = q;
            break;
          }
          if (from >= 0) break;
        }
        sends[r][from] = receives[r][p] = 1;
        refit.rounds[r].pairs.emplace_back(from, p);
      }
      RefitRound& round = refit.rounds[r];
      round.width = std::max(round.width, end - begin);
      round.low[p] = begin - first;
      round.high[p] = end - first;
      round.start[from] = begin - s * refit.block_before;
      begins[r][p] = s * refit.block_before;
    }
  }
  for (size_t r = 0; r < refit.rounds.size(); ++r) {
    RefitRound& round = refit.rounds[r];
    // Pieces that are shorter than the longest end where their block does.
    for (int64_t& start : round.start) {
      start = std::min(start, refit.block_before - round.width);
    }
    const auto place = [&](int64_t from, int64_t to) {
      round.place[to] =
          begins[r][to] + round.start[from] - ShardIndex(mesh, after, to) * refit.block_after;
    };
    if (r == 0) {
      for (int64_t p = 0; p < n; ++p) {
        if (round.high[p] > round.low[p]) place(p, p);
      }
    }
    for (const auto& [from, to] : round.pairs) {
      place(from, to);
      refit.element_links += round.width * Distance(mesh, all, from, to);
    }
  }
  return refit;
}

Instruction* CarryOut(Builder& builder, Instruction* value, int64_t dim, const Refit& refit) {
  const std::vector<int64_t> partitions = sharding::PartitionAtPosition(builder.mesh());
  hlo::Shape shape = value->shape();
  shape.dims[dim] = refit.block_after;
  Instruction* zero = builder.Zero(shape.element_type);
  Instruction* result = nullptr;
  Instruction* index = IotaAlong(builder, shape.dims, dim);
  for (const RefitRound& round : refit.rounds) {
    if (round.width == 0) continue;
    Instruction* part =
        DynamicSliceDim(builder, value, dim, EntryOfDevice(builder, round.start), round.width);
    if (!round.pairs.empty()) {
      std::vector<std::pair<int64_t, int64_t>> pairs;
      for (const auto& [from, to] : round.pairs) {
        pairs.emplace_back(partitions[from], partitions[to]);
      }
      std::ranges::sort(pairs);
      part = builder.CollectivePermute(part, pairs, AxesOfPairs(builder.mesh(), pairs));
    }
    // Element i of the new block is element i - place of the piece.
    part = PadDim(builder, part, dim, refit.block_after, refit.block_after, zero);
    std::vector<int64_t> start = round.place;
    for (int64_t& place : start) place = refit.block_after - place;
    part = DynamicSliceDim(builder, part, dim, EntryOfDevice(builder, start), refit.block_after);
    if (result != nullptr) {
      const auto spread = [&](const std::vector<int64_t>& table) {
        return Spread(builder, EntryOfDevice(builder, table), shape.dims);
      };
      Instruction* given =
          Binary(builder, hlo::Opcode::kAnd, Compare(builder, "GE", index, spread(round.low)),
                 Compare(builder, "LT", index, spread(round.high)));
      part = Select(builder, given, part, result);
    }
    result = part;
  }
  return result;
}

}  // namespace tpusim::spmd
