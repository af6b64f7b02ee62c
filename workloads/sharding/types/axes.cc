#include "workloads/sharding/types/axes.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <set>

#include "configs/status_macros.h"
#include "fmt/format.h"

namespace tpusim::sharding {

AxisRef FullAxis(const Mesh& mesh, int32_t axis) { return {axis, 1, mesh.axes[axis].size}; }

int64_t Product(const Axes& axes) {
  int64_t product = 1;
  for (const AxisRef& axis : axes) product *= axis.size;
  return product;
}

bool Contains(const Axes& axes, const AxisRef& axis) {
  return std::ranges::find(axes, axis) != axes.end();
}

// A piece covers the factors between pre_size and pre_size * size of its axis.
bool Overlap(const AxisRef& a, const AxisRef& b) {
  return a.axis == b.axis && a.pre_size < b.pre_size * b.size && b.pre_size < a.pre_size * a.size;
}

bool Overlap(const Axes& a, const AxisRef& b) {
  return std::ranges::any_of(a, [&](const AxisRef& axis) { return Overlap(axis, b); });
}

bool Overlap(const Axes& a, const Axes& b) {
  return std::ranges::any_of(b, [&](const AxisRef& axis) { return Overlap(a, axis); });
}

namespace {

// Most lists are: then nothing needs to be made.
bool IsJoined(const Axes& axes) {
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i].size == 1) return false;
    if (i > 0 && axes[i - 1].axis == axes[i].axis &&
        axes[i - 1].pre_size * axes[i - 1].size == axes[i].pre_size) {
      return false;
    }
  }
  return true;
}

}  // namespace

Axes Joined(const Axes& axes) {
  if (IsJoined(axes)) return axes;
  Axes joined;
  for (const AxisRef& axis : axes) {
    if (axis.size == 1) continue;
    if (!joined.empty() && joined.back().axis == axis.axis &&
        joined.back().pre_size * joined.back().size == axis.pre_size) {
      joined.back().size *= axis.size;
    } else {
      joined.push_back(axis);
    }
  }
  return joined;
}

std::optional<std::pair<Axes, Axes>> SplitMajor(const Axes& axes, int64_t size) {
  Axes head, tail;
  int64_t left = size;
  for (const AxisRef& axis : axes) {
    if (left == 1 || !tail.empty()) {
      tail.push_back(axis);
    } else if (left % axis.size == 0) {
      head.push_back(axis);
      left /= axis.size;
    } else if (axis.size % left == 0) {
      head.push_back({axis.axis, axis.pre_size, left});
      tail.push_back({axis.axis, axis.pre_size * left, axis.size / left});
      left = 1;
    } else {
      return std::nullopt;
    }
  }
  if (left != 1) return std::nullopt;
  return std::make_pair(Joined(head), Joined(tail));
}

Axes CommonPrefix(const Axes& a, const Axes& b) {
  if (!IsJoined(a) || !IsJoined(b)) return CommonPrefix(Joined(a), Joined(b));
  const Axes &left = a, &right = b;
  Axes prefix;
  for (size_t i = 0; i < std::min(left.size(), right.size()); ++i) {
    const AxisRef &x = left[i], &y = right[i];
    if (x == y) {
      prefix.push_back(x);
      continue;
    }
    if (x.axis == y.axis && x.pre_size == y.pre_size) {
      const int64_t small = std::min(x.size, y.size), large = std::max(x.size, y.size);
      if (large % small == 0) prefix.push_back({x.axis, x.pre_size, small});
    }
    break;
  }
  return prefix;
}

bool IsPrefix(const Axes& prefix, const Axes& axes) {
  if (!IsJoined(prefix) || !IsJoined(axes)) return IsPrefix(Joined(prefix), Joined(axes));
  if (prefix.size() > axes.size()) return false;
  for (size_t i = 0; i < prefix.size(); ++i) {
    const AxisRef &x = prefix[i], &y = axes[i];
    if (x == y) continue;
    // The last one may be a piece of the other's.
    return i + 1 == prefix.size() && x.axis == y.axis && x.pre_size == y.pre_size &&
           y.size % x.size == 0;
  }
  return true;
}

Axes AfterPrefix(const Axes& prefix, const Axes& axes) {
  if (prefix.empty()) return Joined(axes);
  TPUSIM_CHECK(IsPrefix(prefix, axes), "not a prefix");
  return SplitMajor(axes, Product(prefix))->second;
}

Axes Concat(Axes a, const Axes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return IsJoined(a) ? std::move(a) : Joined(a);
}

bool CutAlike(std::vector<Axes*> lists) {
  std::map<int32_t, std::set<int64_t>> cuts;
  for (const Axes* axes : lists) {
    for (const AxisRef& axis : *axes) {
      cuts[axis.axis].insert(axis.pre_size);
      cuts[axis.axis].insert(axis.pre_size * axis.size);
    }
  }
  for (const auto& [axis, points] : cuts) {
    for (auto it = points.begin(); std::next(it) != points.end(); ++it) {
      if (*std::next(it) % *it != 0) return false;
    }
  }
  for (Axes* axes : lists) {
    Axes cut;
    for (const AxisRef& axis : *axes) {
      int64_t from = axis.pre_size;
      for (int64_t point : cuts[axis.axis]) {
        if (point <= from || point > axis.pre_size * axis.size) continue;
        cut.push_back({axis.axis, from, point / from});
        from = point;
      }
    }
    *axes = cut;
  }
  return true;
}

int64_t Stride(const Mesh& mesh, const AxisRef& axis) {
  int64_t stride = mesh.axes[axis.axis].size / (axis.pre_size * axis.size);
  for (size_t i = axis.axis + 1; i < mesh.axes.size(); ++i) stride *= mesh.axes[i].size;
  return stride;
}

int64_t ShardIndex(const Mesh& mesh, const Axes& axes, int64_t position) {
  int64_t index = 0;
  for (const AxisRef& axis : axes) {
    index = index * axis.size + position / Stride(mesh, axis) % axis.size;
  }
  return index;
}

std::vector<int64_t> PartitionAtPosition(const Mesh& mesh) {
  if (!mesh.device_ids.empty()) return mesh.device_ids;
  std::vector<int64_t> ids(mesh.size());
  std::iota(ids.begin(), ids.end(), 0);
  return ids;
}

std::vector<int64_t> PositionOfPartition(const Mesh& mesh) {
  const std::vector<int64_t> partitions = PartitionAtPosition(mesh);
  std::vector<int64_t> positions(partitions.size());
  for (size_t i = 0; i < partitions.size(); ++i) positions[partitions[i]] = i;
  return positions;
}

std::vector<std::vector<int64_t>> ReplicaGroups(const Mesh& mesh, const Axes& axes) {
  const std::vector<int64_t> partitions = PartitionAtPosition(mesh);
  const int64_t group_size = Product(axes);
  std::vector<int64_t> strides;
  for (const AxisRef& axis : axes) strides.push_back(Stride(mesh, axis));
  std::vector<std::vector<int64_t>> groups;
  // Of the first member of a group, which has coordinate 0 along all of the axes
  // and comes before the others.
  std::vector<size_t> group_of(static_cast<size_t>(mesh.size()));
  for (int64_t position = 0; position < mesh.size(); ++position) {
    int64_t first = position, index = 0;
    for (size_t a = 0; a < axes.size(); ++a) {
      const int64_t at = position / strides[a] % axes[a].size;
      first -= at * strides[a];
      index = index * axes[a].size + at;
    }
    if (first == position) {
      group_of[position] = groups.size();
      groups.emplace_back(group_size);
    }
    groups[group_of[first]][index] = partitions[position];
  }
  return groups;
}

std::optional<hlo::IotaGroups> IotaReplicaGroups(const Mesh& mesh, const Axes& axes) {
  if (!mesh.device_ids.empty()) return std::nullopt;
  // Every axis of the mesh, cut where a piece begins or ends.
  std::vector<int64_t> dims;
  std::vector<std::vector<int64_t>> dims_of_ref(axes.size());
  for (size_t whole = 0; whole < mesh.axes.size(); ++whole) {
    std::set<int64_t> cuts = {1, mesh.axes[whole].size};
    for (const AxisRef& axis : axes) {
      if (axis.axis == static_cast<int32_t>(whole)) {
        cuts.insert({axis.pre_size, axis.pre_size * axis.size});
      }
    }
    for (auto cut = std::next(cuts.begin()); cut != cuts.end(); ++cut) {
      const int64_t before = *std::prev(cut);
      if (*cut % before != 0) return std::nullopt;
      for (size_t a = 0; a < axes.size(); ++a) {
        if (axes[a].axis == static_cast<int32_t>(whole) && axes[a].pre_size <= before &&
            *cut <= axes[a].pre_size * axes[a].size) {
          dims_of_ref[a].push_back(static_cast<int64_t>(dims.size()));
        }
      }
      dims.push_back(*cut / before);
    }
  }
  if (dims.empty()) return std::nullopt;
  std::vector<int64_t> grouped;
  for (const std::vector<int64_t>& of_ref : dims_of_ref) {
    grouped.insert(grouped.end(), of_ref.begin(), of_ref.end());
  }
  std::vector<int64_t> order;
  for (int64_t d = 0; d < static_cast<int64_t>(dims.size()); ++d) {
    if (std::ranges::find(grouped, d) == grouped.end()) order.push_back(d);
  }
  order.insert(order.end(), grouped.begin(), grouped.end());
  // Neighbours that stay neighbours are one dimension.
  std::vector<bool> joins_last(dims.size());
  for (size_t i = 1; i < order.size(); ++i) joins_last[order[i]] = order[i] == order[i - 1] + 1;
  std::vector<int64_t> joined(dims.size());
  hlo::IotaGroups groups;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (joins_last[d]) {
      groups.reshape_dims.back() *= dims[d];
    } else {
      groups.reshape_dims.push_back(dims[d]);
    }
    joined[d] = static_cast<int64_t>(groups.reshape_dims.size()) - 1;
  }
  for (const int64_t d : order) {
    if (!joins_last[d]) groups.transpose_perm.push_back(joined[d]);
  }
  groups.group_size = Product(axes);
  groups.groups = mesh.size() / groups.group_size;
  return groups;
}

std::string ToString(const AxisRef& axis, const Mesh& mesh) {
  const MeshAxis& whole = mesh.axes[axis.axis];
  if (axis.pre_size == 1 && axis.size == whole.size) return whole.name;
  return fmt::format("{}:({}){}", whole.name, axis.pre_size, axis.size);
}

std::string ToString(const Axes& axes, const Mesh& mesh) {
  std::string text;
  for (const AxisRef& axis : axes) {
    if (!text.empty()) text += ',';
    text += ToString(axis, mesh);
  }
  return text;
}

}  // namespace tpusim::sharding
