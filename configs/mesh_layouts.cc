#include "configs/mesh_layouts.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "configs/mesh_assignment.h"

namespace tpusim::configs {
namespace {

// Distances between members are taken from so many groups, and so many members of each.
constexpr size_t kMostGroups = 16, kMostMembers = 32;
constexpr size_t kMostLayouts = 1024;

// Enumerates all assignments: the chips of every physical axis that each logical axis has.
class Assignments {
 public:
  Assignments(std::vector<int64_t> physical, std::vector<int64_t> logical)
      : free_(std::move(physical)), logical_(std::move(logical)) {
    assignment_.assign(free_.size(), std::vector<int64_t>(logical_.size(), 1));
    if (!logical_.empty()) Assign(0, 0, logical_[0]);
  }

  const std::vector<MeshAssignment>& all() const { return all_; }
  bool too_many() const { return all_.size() > kMostLayouts; }

 private:
  // `rest` of logical axis l is to be given to the physical axes from p on. As deep as there are
  // pairs of axes.
  void Assign(size_t l, size_t p, int64_t rest) {
    if (too_many()) return;
    if (p == free_.size()) {
      if (rest != 1) return;
      if (l + 1 == logical_.size()) {
        all_.push_back(assignment_);
      } else {
        Assign(l + 1, 0, logical_[l + 1]);
      }
      return;
    }
    const int64_t length = free_[p];
    for (int64_t part = 1; part <= std::min(length, rest); ++part) {
      if (length % part != 0 || rest % part != 0) continue;
      assignment_[p][l] = part;
      free_[p] = length / part;
      Assign(l, p + 1, rest / part);
    }
    assignment_[p][l] = 1;
    free_[p] = length;
  }

  std::vector<int64_t> free_;
  std::vector<int64_t> logical_;
  MeshAssignment assignment_;
  std::vector<MeshAssignment> all_;
};

std::vector<int64_t> SizesOf(const std::vector<NamedAxis>& mesh) {
  std::vector<int64_t> sizes;
  for (const NamedAxis& axis : mesh) sizes.push_back(axis.size);
  return sizes;
}

int64_t MeshSize(const std::vector<int64_t>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
}

// Returns how many positions of the mesh (last axis minor) lie between neighbours on an axis.
int64_t StrideOf(const std::vector<int64_t>& sizes, size_t axis) {
  int64_t stride = 1;
  for (size_t a = axis + 1; a < sizes.size(); ++a) stride *= sizes[a];
  return stride;
}

constexpr const char* kPhysicalNames[] = {"x", "y", "z", "the devices of a chip"};

std::string TextOf(const MeshAssignment& assignment, const std::vector<int64_t>& physical,
                   const std::vector<NamedAxis>& mesh, const std::vector<size_t>& nesting) {
  std::string text;
  for (size_t l = 0; l < mesh.size(); ++l) {
    if (mesh[l].size == 1) continue;
    text += fmt::format("{}{} over ", text.empty() ? "" : ", ", mesh[l].name);
    const char* before = "";
    for (size_t p = 0; p < physical.size(); ++p) {
      const int64_t part = assignment[p][l];
      if (part == 1) continue;
      text += fmt::format("{}{}", before, kPhysicalNames[p]);
      before = " and ";
      if (part == physical[p]) continue;
      // Which part of the axis: side by side if nothing nests inside of it.
      int64_t inside = 1;
      for (size_t n = nesting.size(); n-- > 0 && nesting[n] != l;) {
        inside *= assignment[p][nesting[n]];
      }
      text += inside == 1 ? fmt::format(" ({} side by side)", part)
                          : fmt::format(" ({}, each {} apart)", part, inside);
    }
  }
  return text;
}

// The devices of the mesh when later axes of `nesting` are the inner ones.
std::vector<int64_t> DevicesOf(const Topology& topology, const MeshAssignment& assignment,
                               const std::vector<int64_t>& sizes,
                               const std::vector<size_t>& nesting) {
  MeshAssignment permuted = assignment;
  std::vector<int64_t> permuted_sizes(sizes.size());
  for (size_t n = 0; n < nesting.size(); ++n) {
    permuted_sizes[n] = sizes[nesting[n]];
    for (size_t p = 0; p < assignment.size(); ++p) permuted[p][n] = assignment[p][nesting[n]];
  }
  const std::vector<std::vector<int64_t>> at = MeshCoordinates(permuted, permuted_sizes);
  const int64_t cores = topology.devices_per_chip();
  std::vector<int64_t> devices;
  for (int64_t partition = 0; partition < MeshSize(sizes); ++partition) {
    int64_t position = 0;
    for (size_t n = 0; n < nesting.size(); ++n) {
      const int64_t index = partition / StrideOf(sizes, nesting[n]) % sizes[nesting[n]];
      position += index * StrideOf(permuted_sizes, n);
    }
    const std::vector<int64_t>& c = at[static_cast<size_t>(position)];
    devices.push_back(topology.ChipAt({{c[0], c[1], c[2]}}) * cores + c[3]);
  }
  return devices;
}

bool AsNear(const MeshLayout& a, const MeshLayout& b) {
  return std::ranges::equal(a.apart, b.apart, std::less_equal<>());
}

// Returns layouts that no other one beats: in turn for every axis the nearest for it.
std::vector<MeshLayout> Best(std::vector<MeshLayout> layouts, size_t axes, size_t most) {
  std::vector<MeshLayout> front;
  for (MeshLayout& layout : layouts) {
    if (std::ranges::any_of(front, [&](const MeshLayout& f) { return AsNear(f, layout); })) {
      continue;
    }
    std::erase_if(front, [&](const MeshLayout& f) { return AsNear(layout, f); });
    front.push_back(std::move(layout));
  }
  const auto sum = [](const MeshLayout& layout) {
    return std::accumulate(layout.apart.begin(), layout.apart.end(), 0.0);
  };
  std::vector<MeshLayout> chosen;
  for (size_t turn = 0; chosen.size() < most && !front.empty(); ++turn) {
    const size_t axis = turn % axes;
    const auto best =
        std::min_element(front.begin(), front.end(), [&](const MeshLayout& a, const MeshLayout& b) {
          return std::pair(a.apart[axis], sum(a)) < std::pair(b.apart[axis], sum(b));
        });
    chosen.push_back(std::move(*best));
    front.erase(best);
  }
  return chosen;
}

}  // namespace

double MeanHops(const Topology& topology, const std::vector<NamedAxis>& mesh,
                const std::vector<int64_t>& device_of_partition, size_t axis) {
  const std::vector<int64_t> sizes = SizesOf(mesh);
  const int64_t stride = StrideOf(sizes, axis), size = sizes[axis];
  const int64_t cores = topology.devices_per_chip();
  const auto partitions = static_cast<int64_t>(device_of_partition.size());
  const int64_t groups = partitions / size;
  const int64_t every = std::max<int64_t>(1, groups / static_cast<int64_t>(kMostGroups));
  const int64_t members = std::min<int64_t>(size, kMostMembers);
  int64_t hops = 0, pairs = 0;
  for (int64_t group = 0; group < groups; group += every) {
    const int64_t first = group / stride * stride * size + group % stride;
    const auto chip = [&](int64_t member) {
      return device_of_partition[static_cast<size_t>(first + member * stride)] / cores;
    };
    for (int64_t a = 0; a < members; ++a) {
      for (int64_t b = a + 1; b < size; ++b) {
        hops += topology.Distance(chip(a), chip(b));
        ++pairs;
      }
    }
  }
  return pairs == 0 ? 0 : static_cast<double>(hops) / static_cast<double>(pairs);
}

std::vector<MeshLayout> MeshLayouts(const Topology& topology, const std::vector<NamedAxis>& mesh,
                                    size_t most) {
  const std::vector<int64_t> sizes = SizesOf(mesh);
  if (mesh.empty() || topology.slices() > 1 || MeshSize(sizes) != topology.devices()) return {};
  std::vector<int64_t> physical(topology.shape().begin(), topology.shape().end());
  physical.push_back(topology.devices_per_chip());
  const Assignments assignments(physical, sizes);
  if (assignments.too_many()) return {};
  std::vector<MeshLayout> layouts;
  std::set<std::vector<int64_t>> seen;
  std::vector<size_t> nesting(mesh.size());
  std::iota(nesting.begin(), nesting.end(), 0);
  do {
    for (const MeshAssignment& assignment : assignments.all()) {
      MeshLayout layout;
      layout.device_of_partition = DevicesOf(topology, assignment, sizes, nesting);
      if (!seen.insert(layout.device_of_partition).second) continue;
      layout.text = TextOf(assignment, physical, mesh, nesting);
      for (size_t axis = 0; axis < mesh.size(); ++axis) {
        layout.apart.push_back(MeanHops(topology, mesh, layout.device_of_partition, axis));
      }
      layouts.push_back(std::move(layout));
    }
    if (layouts.size() > kMostLayouts) return {};
  } while (std::next_permutation(nesting.begin(), nesting.end()));
  return Best(std::move(layouts), mesh.size(), most);
}

}  // namespace tpusim::configs
