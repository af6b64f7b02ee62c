#include "configs/mesh_assignment.h"

#include <algorithm>
#include <compare>
#include <numeric>

namespace tpusim::configs {
namespace {

int64_t Product(const std::vector<int64_t>& values) {
  int64_t product = 1;
  for (int64_t v : values) product *= v;
  return product;
}

MeshAssignment Ones(size_t physical, size_t logical) {
  return MeshAssignment(physical, std::vector<int64_t>(logical, 1));
}

// The first subset of `wanted` axes, in lexical order of their places in `order`, whose free
// lengths multiply to `size`; taken axes have length 0.
std::optional<std::vector<size_t>> FindAxes(const std::vector<int64_t>& free,
                                            const std::vector<size_t>& order, size_t wanted,
                                            int64_t size) {
  std::vector<size_t> chosen(wanted);
  for (size_t i = 0; i < wanted; ++i) chosen[i] = i;
  while (true) {
    int64_t product = 1;
    for (size_t place : chosen) product *= free[order[place]];
    if (product == size) {
      for (size_t& place : chosen) place = order[place];
      return chosen;
    }
    // The next combination: advance the last axis that can still move.
    size_t i = wanted;
    while (i > 0 && chosen[i - 1] == free.size() - wanted + i - 1) --i;
    if (i == 0) return std::nullopt;
    ++chosen[i - 1];
    for (size_t j = i; j < wanted; ++j) chosen[j] = chosen[j - 1] + 1;
  }
}

// Lists all ways to write `size` as a product of divisors of `free`.
void EnumerateSplits(const std::vector<int64_t>& free, int64_t size, std::vector<int64_t>* prefix,
                     std::vector<std::vector<int64_t>>* result) {
  if (prefix->size() == free.size()) {
    if (size == 1) result->push_back(*prefix);
    return;
  }
  const int64_t length = free[prefix->size()];
  for (int64_t part = 1; part <= length; ++part) {
    if (length % part != 0 || size % part != 0) continue;
    prefix->push_back(part);
    EnumerateSplits(free, size / part, prefix, result);
    prefix->pop_back();
  }
}

// The order in which JAX prefers assignments of one logical axis, most important first.
struct Preference {
  int64_t whole_size = 1;  // chips on physical axes that are taken whole
  int64_t whole_axes = 0;
  // Chips on axes that earlier logical axes already use. Its comment says the
  // opposite is meant, but the order of devices is what the code does.
  int64_t shared_size = 1;
  std::vector<int64_t> parts;
  auto operator<=>(const Preference&) const = default;
};

Preference Rate(const std::vector<int64_t>& parts, const std::vector<int64_t>& physical,
                const std::vector<int64_t>& used) {
  Preference rating;
  rating.parts = parts;
  for (size_t p = 0; p < parts.size(); ++p) {
    if (parts[p] == physical[p]) {
      rating.whole_size *= parts[p];
      if (parts[p] > 1) ++rating.whole_axes;
    }
    if (used[p] > 1) rating.shared_size *= parts[p];
  }
  return rating;
}

}  // namespace

std::optional<MeshAssignment> AssignWholeAxes(const std::vector<int64_t>& physical,
                                              const std::vector<int64_t>& logical,
                                              bool last_first) {
  MeshAssignment assignment = Ones(physical.size(), logical.size());
  std::vector<int64_t> free = physical;
  std::vector<size_t> order(physical.size());
  std::iota(order.begin(), order.end(), size_t{0});
  if (last_first) std::rotate(order.begin(), order.end() - 1, order.end());
  for (size_t l = logical.size(); l-- > 0;) {
    bool found = false;
    for (size_t wanted = physical.size(); wanted > 0 && !found; --wanted) {
      const auto axes = FindAxes(free, order, wanted, logical[l]);
      if (!axes) continue;
      for (size_t axis : *axes) {
        assignment[axis][l] = physical[axis];
        free[axis] = 0;
      }
      found = true;
    }
    if (!found && logical[l] > 1) return std::nullopt;
  }
  return assignment;
}

std::optional<MeshAssignment> AssignSplitAxes(const std::vector<int64_t>& physical,
                                              const std::vector<int64_t>& logical) {
  if (Product(physical) != Product(logical)) return std::nullopt;
  MeshAssignment assignment = Ones(physical.size(), logical.size());
  for (size_t l = logical.size(); l-- > 0;) {
    std::vector<int64_t> used;
    std::vector<int64_t> free;
    for (size_t p = 0; p < physical.size(); ++p) {
      used.push_back(Product(assignment[p]));
      free.push_back(physical[p] / used[p]);
    }
    std::vector<int64_t> prefix;
    std::vector<std::vector<int64_t>> candidates;
    EnumerateSplits(free, logical[l], &prefix, &candidates);
    if (candidates.empty()) return std::nullopt;
    Preference best = Rate(candidates[0], physical, used);
    for (const std::vector<int64_t>& candidate : candidates) {
      Preference rating = Rate(candidate, physical, used);
      if (rating > best) best = std::move(rating);
    }
    for (size_t p = 0; p < physical.size(); ++p) assignment[p][l] = best.parts[p];
  }
  return assignment;
}

std::vector<std::vector<int64_t>> MeshCoordinates(const MeshAssignment& assignment,
                                                  const std::vector<int64_t>& logical) {
  std::vector<std::vector<int64_t>> result;
  std::vector<int64_t> index(logical.size(), 0);
  const int64_t count = Product(logical);
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i;
    for (size_t l = logical.size(); l-- > 0;) {
      index[l] = rest % logical[l];
      rest /= logical[l];
    }
    // A logical index is a number whose digits, first physical axis most
    // significant, are its shares of the physical coordinates.
    std::vector<int64_t> at(assignment.size(), 0);
    std::vector<int64_t> stride(assignment.size(), 1);
    for (size_t l = logical.size(); l-- > 0;) {
      for (size_t p = assignment.size(); p-- > 0;) {
        const int64_t part = assignment[p][l];
        at[p] += index[l] % part * stride[p];
        stride[p] *= part;
        index[l] /= part;
      }
    }
    result.push_back(std::move(at));
  }
  return result;
}

}  // namespace tpusim::configs
