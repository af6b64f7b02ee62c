#include "workloads/spmd/refit.h"

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

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

// The devices among which pieces are sent: those that differ along axes, or parts of axes, by which
// the dimension is split. Others have other parts of the array's other dimensions. All groups are
// alike: a device is a member of the first group, moved to where its group begins.
struct Groups {
  std::vector<int64_t> members;  // positions in the first
  std::vector<int64_t> begins;   // positions of first members
};

// nullopt: cuts of the axes do not nest.
std::optional<Groups> GroupsOf(const Mesh& mesh, Axes before, Axes after) {
  Axes parts = AllAxes(mesh), inside, outside;
  if (!sharding::CutAlike({&parts, &before, &after})) return std::nullopt;
  for (const sharding::AxisRef& axis : parts) {
    (Contains(before, axis) || Contains(after, axis) ? inside : outside).push_back(axis);
  }
  Groups groups;
  for (int64_t p = 0; p < mesh.size(); ++p) {
    if (ShardIndex(mesh, outside, p) == 0) groups.members.push_back(p);
    if (ShardIndex(mesh, inside, p) == 0) groups.begins.push_back(p);
  }
  return groups;
}

// Links between members; axes may or may not be rings, so no path goes round.
class Distances {
 public:
  Distances(const Mesh& mesh, const std::vector<int64_t>& members) {
    for (const sharding::AxisRef& axis : AllAxes(mesh)) {
      std::vector<int64_t>& along = places_.emplace_back();
      for (const int64_t p : members) along.push_back(ShardIndex(mesh, {axis}, p));
    }
  }
  int64_t operator()(int64_t a, int64_t b) const {
    int64_t links = 0;
    for (const std::vector<int64_t>& along : places_) links += std::abs(along[a] - along[b]);
    return links;
  }

 private:
  std::vector<std::vector<int64_t>> places_;  // by axis and member
};

// Returns the round with the moves of one group's members made in all groups.
RefitRound InAllGroups(const RefitRound& round, const Groups& groups) {
  RefitRound all;
  all.width = round.width;
  const size_t devices = groups.members.size() * groups.begins.size();
  for (auto* table : {&all.start, &all.low, &all.high, &all.place}) table->resize(devices);
  for (const int64_t begin : groups.begins) {
    const auto position = [&](int64_t member) { return begin + groups.members[member]; };
    for (int64_t m = 0; m < std::ssize(groups.members); ++m) {
      const int64_t p = position(m);
      all.start[p] = round.start[m];
      all.low[p] = round.low[m];
      all.high[p] = round.high[m];
      all.place[p] = round.place[m];
    }
    for (const auto& [from, to] : round.pairs) all.pairs.emplace_back(position(from), position(to));
  }
  return all;
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
  Refit refit;
  refit.block_before = CeilDiv(size, Product(before));
  refit.block_after = CeilDiv(size, Product(after));
  const std::optional<Groups> groups = GroupsOf(mesh, before, after);
  if (!groups) return std::nullopt;
  const auto count = std::ssize(groups->begins), n = std::ssize(groups->members);
  const Distances distance(mesh, groups->members);
  std::vector<int64_t> held(n), wanted(n);              // shards, by member
  std::vector<std::vector<int64_t>> holders(Product(before));  // members, by shard
  for (int64_t m = 0; m < n; ++m) {
    held[m] = ShardIndex(mesh, before, groups->members[m]);
    wanted[m] = ShardIndex(mesh, after, groups->members[m]);
    holders[held[m]].push_back(m);
  }
  // By round, of members.
  std::vector<RefitRound> rounds;
  std::vector<std::vector<char>> sends, receives;
  std::vector<std::vector<int64_t>> begins;  // of the sender's block, overall
  const auto add_round = [&] {
    RefitRound& round = rounds.emplace_back();
    for (auto* table : {&round.start, &round.low, &round.high, &round.place}) table->assign(n, 0);
    sends.emplace_back(n), receives.emplace_back(n), begins.emplace_back(n);
  };
  add_round();
  int64_t looked_at = 0;  // pairs of devices
  for (int64_t m = 0; m < n; ++m) {
    const int64_t first = wanted[m] * refit.block_after;
    const int64_t limit = std::min(first + refit.block_after, size);
    for (int64_t s = first / refit.block_before; first < limit && s * refit.block_before < limit;
         ++s) {
      const int64_t begin = std::max(first, s * refit.block_before);
      const int64_t end = std::min(limit, (s + 1) * refit.block_before);
      size_t r = 0;
      int64_t from = m;
      if (s != held[m]) {
        looked_at += std::ssize(holders[s]) * count;
        if (looked_at > limits::kRefitPairs.most()) {
          limits::kRefitPairs.Reached();
          return std::nullopt;
        }
        std::vector<std::pair<int64_t, int64_t>> senders;  // nearest first
        for (const int64_t q : holders[s]) senders.emplace_back(distance(m, q), q);
        std::ranges::sort(senders);
        from = -1;
        for (r = 1; from < 0; ++r) {
          if (std::cmp_greater(r, limits::kRefitRounds.most())) {
            limits::kRefitRounds.Reached();
            return std::nullopt;
          }
          if (r == rounds.size()) add_round();
          if (receives[r][m]) continue;
          for (const auto& [links, q] : senders) {
            if (sends[r][q]) continue;
            from = q;
            break;
          }
          if (from >= 0) break;
        }
        sends[r][from] = receives[r][m] = 1;
        rounds[r].pairs.emplace_back(from, m);
      }
      RefitRound& round = rounds[r];
      round.width = std::max(round.width, end - begin);
      round.low[m] = begin - first;
      round.high[m] = end - first;
      round.start[from] = begin - s * refit.block_before;
      begins[r][m] = s * refit.block_before;
    }
  }
  for (size_t r = 0; r < rounds.size(); ++r) {
    RefitRound& round = rounds[r];
    // Pieces that are shorter than the longest end where their block does.
    for (int64_t& start : round.start) {
      start = std::min(start, refit.block_before - round.width);
    }
    const auto place = [&](int64_t from, int64_t to) {
      round.place[to] = begins[r][to] + round.start[from] - wanted[to] * refit.block_after;
    };
    if (r == 0) {
      for (int64_t m = 0; m < n; ++m) {
        if (round.high[m] > round.low[m]) place(m, m);
      }
    }
    for (const auto& [from, to] : round.pairs) {
      place(from, to);
      refit.element_links += count * round.width * distance(from, to);
    }
    refit.rounds.push_back(InAllGroups(round, *groups));
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
