#include "workloads/sharding/types/sharding.h"

#include <algorithm>

#include "configs/status_macros.h"
#include "configs/units.h"
#include "fmt/format.h"
#include "workloads/sharding/types/axes.h"

namespace tpusim::sharding {

int64_t Mesh::size() const {
  int64_t product = 1;
  for (const MeshAxis& axis : axes) product *= axis.size;
  return product;
}

int64_t Sharding::Shards(int64_t dim) const { return Product(dims[dim].axes); }

Sharding Replicated(int64_t rank) {
  Sharding sharding;
  sharding.dims.resize(rank);
  return sharding;
}

bool FullyClosed(const Sharding& sharding) {
  return std::ranges::none_of(sharding.dims, [](const DimSharding& dim) { return dim.open; });
}

bool SamePlacement(const Sharding& a, const Sharding& b) {
  if (a.dims.size() != b.dims.size()) return false;
  for (size_t i = 0; i < a.dims.size(); ++i) {
    if (Joined(a.dims[i].axes) != Joined(b.dims[i].axes)) return false;
  }
  Axes left = Joined(a.unreduced), right = Joined(b.unreduced);
  std::ranges::sort(left);
  std::ranges::sort(right);
  return left == right && (left.empty() || a.reduction == b.reduction);
}

std::string ToString(const Mesh& mesh) {
  std::string text = "mesh[";
  for (size_t i = 0; i < mesh.axes.size(); ++i) {
    text += fmt::format("{}'{}'={}", i == 0 ? "" : ",", mesh.axes[i].name, mesh.axes[i].size);
  }
  text += "]";
  if (!mesh.device_ids.empty()) {
    text += fmt::format(" device_ids=[{}]", fmt::join(mesh.device_ids, ","));
  }
  return text;
}

std::string ToString(const Sharding& sharding, const Mesh& mesh) {
  std::string text = "[";
  for (size_t i = 0; i < sharding.dims.size(); ++i) {
    const DimSharding& dim = sharding.dims[i];
    std::string axes = ToString(dim.axes, mesh);
    if (dim.open) axes += axes.empty() ? "?" : ",?";
    text += fmt::format("{}{{{}}}", i == 0 ? "" : ", ", axes);
    if (dim.priority != 0) text += fmt::format("p{}", dim.priority);
  }
  text += "]";
  if (!sharding.replicated.empty()) {
    text += fmt::format(" replicated={{{}}}", ToString(sharding.replicated, mesh));
  }
  if (!sharding.unreduced.empty()) {
    constexpr std::string_view kNames[] = {"", "max", "min"};
    text += fmt::format(" unreduced={}{{{}}}", kNames[static_cast<size_t>(sharding.reduction)],
                        ToString(sharding.unreduced, mesh));
  }
  return text;
}

hlo::Shape ShardShape(const hlo::Shape& shape, const Sharding& sharding) {
  TPUSIM_CHECK(
      sharding.dims.size() == shape.dims.size(),
      fmt::format("sharding of {} dimensions on {}", sharding.dims.size(), shape.ToString()));
  hlo::Shape shard = shape;
  for (size_t i = 0; i < shape.dims.size(); ++i) {
    shard.dims[i] = CeilDiv(shape.dims[i], sharding.Shards(i));
  }
  return shard;
}

}  // namespace tpusim::sharding
