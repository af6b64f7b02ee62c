// Groups that are no box still get a ring. Its hops cross several links, and the
// links are shared where hops overlap; both are priced where it is used.
#include <algorithm>
#include <utility>

#include "workloads/collectives/box.h"
#include "workloads/collectives/limits.h"

namespace tpusim::collectives {

std::vector<int64_t> MinimumHopRing(const configs::Topology& topology,
                                    const std::vector<int64_t>& group) {
  const int64_t per_chip = topology.devices_per_chip();
  const auto distance = [&](int64_t a, int64_t b) {
    return topology.Distance(a / per_chip, b / per_chip);
  };
  std::vector<int64_t> left(group.begin() + 1, group.end());
  std::vector<int64_t> ring = {group.front()};
  while (!left.empty()) {
    const auto nearest = std::ranges::min_element(left, [&](int64_t a, int64_t b) {
      return distance(ring.back(), a) < distance(ring.back(), b);
    });
    ring.push_back(*nearest);
    left.erase(nearest);
  }
  const size_t n = ring.size();
  if (n < 4) return ring;  // number: smaller rings are one already
  if (std::cmp_greater(n, limits::kImprovedRing.most())) {
    limits::kImprovedRing.Reached();
    return ring;
  }
  bool improved = true;
  for (int pass = 0; improved; ++pass) {
    if (pass == limits::kRingPasses.most()) {
      limits::kRingPasses.Reached();
      break;
    }
    improved = false;
    for (size_t i = 0; i + 2 < n; ++i) {
      for (size_t j = i + 2; j < n; ++j) {
        // Replaces i -> i+1 and j -> j+1 by i -> j and i+1 -> j+1.
        const int64_t a = ring[i], b = ring[i + 1], c = ring[j], d = ring[(j + 1) % n];
        if (d == a) continue;
        if (distance(a, c) + distance(b, d) < distance(a, b) + distance(c, d)) {
          std::reverse(ring.begin() + i + 1, ring.begin() + j + 1);
          improved = true;
        }
      }
    }
  }
  return ring;
}

}  // namespace tpusim::collectives
