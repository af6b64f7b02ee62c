// Bytes of windows of products, in whole tiles.
#ifndef TPUSIM_WORKLOADS_KERNELS_TILING_TILE_BYTES_H_
#define TPUSIM_WORKLOADS_KERNELS_TILING_TILE_BYTES_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>

#include "configs/units.h"
#include "workloads/hlo/ir/shape.h"
#include "workloads/target/target.h"

namespace tpusim::kernels {

// Bytes of rows x columns windows, in whole tiles. A search asks for the same ones many times.
class TileBytes {
 public:
  explicit TileBytes(const target::Target& target) : target_(target) {}
  Bytes Of(hlo::PrimitiveType type, int64_t rows, int64_t columns) const {
    const auto [known, fresh] = known_.try_emplace({type, rows, columns}, Bytes(0));
    // Narrow arrays lie with their long side along the lanes.
    if (fresh) {
      known->second = std::min(target_.PaddedSize(hlo::MakeShape(type, {rows, columns})),
                               target_.PaddedSize(hlo::MakeShape(type, {columns, rows})));
    }
    return known->second;
  }

 private:
  const target::Target& target_;
  mutable std::map<std::tuple<hlo::PrimitiveType, int64_t, int64_t>, Bytes> known_;
};

}  // namespace tpusim::kernels

#endif  // TPUSIM_WORKLOADS_KERNELS_TILING_TILE_BYTES_H_
