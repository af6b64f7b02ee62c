#include "models/ici/joint_arrivals.h"

#include <algorithm>

namespace tpusim::ici {

bool JointArrivals::Add(int32_t route, int32_t flag, int32_t sender, int32_t senders) {
  if (senders == 1) return true;
  const auto at =
      ahead_.try_emplace({flag, route}, std::vector<int64_t>(static_cast<size_t>(senders), 0))
          .first;
  std::vector<int64_t>& ahead = at->second;
  ++ahead[sender];
  const bool last = *std::min_element(ahead.begin(), ahead.end()) > 0;
  if (last) {
    for (int64_t& count : ahead) --count;
    if (std::all_of(ahead.begin(), ahead.end(), [](int64_t count) { return count == 0; })) {
      ahead_.erase(at);
    }
  }
  return last;
}

void JointArrivals::Visit(steady::StateVisitor& visitor) {
  std::map<std::pair<int32_t, int32_t>, std::vector<int64_t>> moved;
  visitor.Same(static_cast<int64_t>(ahead_.size()));
  for (auto& [key, ahead] : ahead_) {
    auto [flag, route] = key;
    visitor.Named(isa::NameKind::kFlag, flag);
    visitor.Same(route);
    for (const int64_t count : ahead) visitor.Same(count);
    moved[{flag, route}] = std::move(ahead);
  }
  ahead_ = std::move(moved);
}

}  // namespace tpusim::ici
