// From one split of a dimension to another when shards of neither are made of the
// other's: 12 elements over two devices (6, 6) or over eight (2, 2, 2, 2, 2, 2, 0, 0).
//
// Every device says which elements it wants; pieces of other devices' blocks come
// by collective-permutes, in rounds: in one round a device sends at most one piece
// and receives at most one. All pieces of a round have one size, so that it is one
// program; tables, one entry per device, say where a piece is cut out and where it
// goes.
#ifndef TPUSIM_WORKLOADS_SPMD_REFIT_H_
#define TPUSIM_WORKLOADS_SPMD_REFIT_H_

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "workloads/sharding/types/axes.h"
#include "workloads/spmd/emit/builder.h"

namespace tpusim::spmd {

struct RefitRound {
  // Positions in the mesh, sender to receiver. None: what devices have themselves.
  std::vector<std::pair<int64_t, int64_t>> pairs;
  int64_t width = 0;
  // The pieces by position: where the piece begins in the sender's block; which elements of the
  // receiver's new block it gives, [low, high), and where its own begin would be there.
  std::vector<int64_t> start, low, high, place;
};

struct Refit {
  int64_t block_before = 0, block_after = 0;
  std::vector<RefitRound> rounds;
  // Elements times links, added up over all devices.
  int64_t element_links = 0;
};

// A dimension of `size` elements. nullopt: more rounds than are worth it, or a mesh
// so large that tables are.
std::optional<Refit> RefitOf(const sharding::Mesh& mesh, const sharding::Axes& before,
                             const sharding::Axes& after, int64_t size);

hlo::Instruction* CarryOut(Builder& builder, hlo::Instruction* value, int64_t dim,
                           const Refit& refit);

}  // namespace tpusim::spmd

#endif  // TPUSIM_WORKLOADS_SPMD_REFIT_H_
