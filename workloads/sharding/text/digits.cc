#include "workloads/sharding/text/digits.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "configs/status_macros.h"
#include "fmt/format.h"

namespace tpusim::sharding {

// Joins neighbours that continue each other and drops digits of one step.
std::vector<Digit> JoinedDigits(const std::vector<Digit>& digits) {
  std::vector<Digit> joined;
  for (const Digit& digit : digits) {
    if (digit.size == 1) continue;
    if (!joined.empty() && joined.back().stride == digit.stride * digit.size) {
      joined.back() = {joined.back().size * digit.size, digit.stride};
    } else {
      joined.push_back(digit);
    }
  }
  return joined;
}

// A list of devices as a mixed-radix number, if it is one.
absl::StatusOr<std::vector<Digit>> DigitsOfList(std::vector<int64_t> list) {
  std::vector<Digit> digits;  // minor to major while collecting
  if (list.empty() || list[0] != 0) {
    return UserError("the device list does not start with device 0");
  }
  while (list.size() > 1) {
    const int64_t stride = list[1] - list[0];
    size_t run = 1;
    while (run < list.size() && list[run] == static_cast<int64_t>(run) * stride) ++run;
    while (list.size() % run != 0) --run;
    std::vector<int64_t> heads;
    bool regular = run > 1;
    for (size_t i = 0; regular && i < list.size(); i += run) {
      heads.push_back(list[i]);
      for (size_t j = 1; j < run; ++j) {
        regular = regular && list[i + j] == list[i] + static_cast<int64_t>(j) * stride;
      }
    }
    if (!regular || stride <= 0) {
      return NoRule("a device list that no mesh of axes gives has no rule");
    }
    digits.push_back({static_cast<int64_t>(run), stride});
    list = std::move(heads);
  }
  std::ranges::reverse(digits);
  return JoinedDigits(digits);
}

std::vector<int64_t> ListOf(const std::vector<Digit>& digits) {
  std::vector<int64_t> list = {0};
  for (const Digit& digit : digits) {
    std::vector<int64_t> next;
    for (const int64_t id : list) {
      for (int64_t i = 0; i < digit.size; ++i) next.push_back(id + i * digit.stride);
    }
    list = std::move(next);
  }
  return list;
}

bool IsPermutation(std::vector<int64_t> list, int64_t size) {
  std::ranges::sort(list);
  int64_t next = 0;
  return std::ssize(list) == size &&
         std::ranges::all_of(list, [&](int64_t number) { return number == next++; });
}

absl::StatusOr<std::vector<Digit>> TakeDigits(std::vector<Digit>* digits, int64_t size) {
  std::vector<Digit> taken;
  while (size > 1) {
    if (digits->empty()) return UserError("the tile dimensions exceed the devices");
    Digit& front = digits->front();
    if (size % front.size == 0) {
      taken.push_back(front);
      size /= front.size;
      digits->erase(digits->begin());
    } else if (front.size % size == 0) {
      const int64_t rest = front.size / size;
      taken.push_back({size, front.stride * rest});
      front.size = rest;
      size = 1;
    } else {
      return NoRule(fmt::format("{} tiles over device steps of {} have no rule", size, front.size));
    }
  }
  return taken;
}

namespace {

absl::StatusOr<Axes> AxesOfDigit(const Digit& digit, const Mesh& mesh) {
  Axes axes;
  int64_t size = digit.size;
  int64_t stride = mesh.size();  // of the axes passed so far
  for (size_t i = 0; i < mesh.axes.size() && size > 1; ++i) {
    // This axis covers strides [inner, stride).
    const int64_t axis_size = mesh.axes[i].size;
    const int64_t inner = stride / axis_size;
    const int64_t low = std::max(inner, digit.stride);
    const int64_t high = std::min(stride, digit.stride * size);
    stride = inner;
    if (high <= low) continue;
    if (high % low != 0 || low % inner != 0 || (inner * axis_size) % high != 0) {
      return NoRule(fmt::format("{} devices in steps of {} are no part of {}", digit.size,
                                digit.stride, ToString(mesh)));
    }
    axes.push_back({static_cast<int32_t>(i), inner * axis_size / high, high / low});
    size /= high / low;
  }
  if (size != 1) {
    return NoRule(fmt::format("{} devices in steps of {} are no part of {}", digit.size,
                              digit.stride, ToString(mesh)));
  }
  return Joined(axes);
}

}  // namespace

absl::StatusOr<Axes> AxesOfDigits(const std::vector<Digit>& digits, const Mesh& mesh) {
  Axes axes;
  for (const Digit& digit : digits) {
    ASSIGN_OR_RETURN(const Axes more, AxesOfDigit(digit, mesh));
    axes = Concat(axes, more);
  }
  return axes;
}

absl::StatusOr<Mesh> FactorMesh(const std::vector<std::vector<std::vector<Digit>>>& assignments,
                                int64_t devices) {
  std::set<int64_t> cuts = {1, devices};
  for (const auto& assignment : assignments) {
    for (const auto& tile : assignment) {
      for (const Digit& digit : tile) {
        cuts.insert(digit.stride);
        cuts.insert(digit.stride * digit.size);
      }
    }
  }
  Mesh mesh;
  for (auto it = cuts.rbegin(); std::next(it) != cuts.rend(); ++it) {
    if (*it % *std::next(it) != 0) {
      return NoRule(fmt::format(
          "the shardings of the program cut its {} devices at {} and at {}, which no mesh has both",
          devices, *it, *std::next(it)));
    }
    mesh.axes.push_back({fmt::format("axis_{}", mesh.axes.size()), *it / *std::next(it)});
  }
  return mesh;
}

absl::StatusOr<Axes> Translated(const AxisRef& axis, const std::vector<Axes>& axes_in_mesh) {
  if (axis.size == 1) return Axes();
  if (axes_in_mesh.empty()) return Axes{axis};
  const auto behind = SplitMajor(axes_in_mesh[axis.axis], axis.pre_size);
  const auto piece = behind ? SplitMajor(behind->second, axis.size) : std::nullopt;
  if (!piece) {
    return NoRule(fmt::format("a piece ({}){} of an axis cuts the program's axes unevenly",
                              axis.pre_size, axis.size));
  }
  return piece->first;
}

absl::StatusOr<std::vector<Axes>> AxesInMesh(const Mesh& other, const Mesh& mesh) {
  std::vector<Axes> result;
  if (other.size() != mesh.size()) {
    return NoRule(fmt::format("{} has not as many devices as {}, the program's mesh",
                              ToString(other), ToString(mesh)));
  }
  // Where the other mesh's devices are in the program's.
  const std::vector<int64_t> position = PositionOfPartition(mesh);
  std::vector<int64_t> list;
  for (int64_t partition : PartitionAtPosition(other)) list.push_back(position[partition]);
  auto digits = DigitsOfList(std::move(list));
  if (!digits.ok()) {
    return NoRule(fmt::format("{} orders its devices in a way that no axes of {} give",
                              ToString(other), ToString(mesh)));
  }
  for (const MeshAxis& axis : other.axes) {
    ASSIGN_OR_RETURN(const std::vector<Digit> taken, TakeDigits(&*digits, axis.size));
    ASSIGN_OR_RETURN(Axes axes, AxesOfDigits(taken, mesh));
    result.push_back(std::move(axes));
  }
  return result;
}

}  // namespace tpusim::sharding
