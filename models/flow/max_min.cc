#include "models/flow/max_min.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "configs/status_macros.h"

namespace tpusim::flow {

double MaxMinSolver::Level(Server& server) {
  // Subtracting a large weight leaves its rounding error in what is left of the
  // sum; once little is left, sum the remaining weights afresh.
  if (server.weight_sum < 1e-6 * server.weight_scale) {
    server.weight_sum = 0;
    for (uint32_t u = server.user_begin; u < server.user_end; ++u) {
      if (!frozen_[users_[u].flow]) server.weight_sum += users_[u].weight;
    }
    server.weight_scale = server.weight_sum;
  }
  return server.residual / server.weight_sum;
}

void MaxMinSolver::Freeze(const MaxMinProblem& problem, uint32_t flow, double rate,
                          std::span<double> rates) {
  frozen_[flow] = 1;
  rates[flow] = rate;
  for (uint32_t u = problem.use_begin[flow]; u < problem.use_begin[flow + 1]; ++u) {
    Server& server = servers_[problem.uses[u].resource];
    server.residual -= problem.uses[u].weight * rate;
    server.weight_sum -= problem.uses[u].weight;
    --server.rising;
  }
}

void MaxMinSolver::Solve(const MaxMinProblem& problem, std::span<double> rates) {
  const uint32_t flows = static_cast<uint32_t>(problem.cap.size());
  const uint32_t resources = static_cast<uint32_t>(problem.capacity.size());
  constexpr std::greater<std::pair<double, uint32_t>> kSmallestFirst;

  // Who uses what: uses by flow, turned into users by resource.
  servers_.assign(resources, Server());
  for (const MaxMinUse& use : problem.uses) {
    ++servers_[use.resource].rising;
    servers_[use.resource].weight_sum += use.weight;
  }
  uint32_t next = 0;
  for (uint32_t r = 0; r < resources; ++r) {
    Server& server = servers_[r];
    server.residual = problem.capacity[r];
    server.weight_scale = server.weight_sum;
    server.user_begin = server.user_end = next;
    next += server.rising;
  }
  users_.resize(next);
  for (uint32_t f = 0; f < flows; ++f) {
    for (uint32_t u = problem.use_begin[f]; u < problem.use_begin[f + 1]; ++u) {
      users_[servers_[problem.uses[u].resource].user_end++] = {f, problem.uses[u].weight};
    }
  }

  frozen_.assign(flows, 0);
  cap_heap_.clear();
  for (uint32_t f = 0; f < flows; ++f) {
    if (std::isfinite(problem.cap[f])) cap_heap_.push_back({problem.cap[f], f});
  }
  std::make_heap(cap_heap_.begin(), cap_heap_.end(), kSmallestFirst);
  level_heap_.clear();
  for (uint32_t r = 0; r < resources; ++r) {
    if (servers_[r].rising > 0) level_heap_.push_back({Level(servers_[r]), r});
  }
  std::make_heap(level_heap_.begin(), level_heap_.end(), kSmallestFirst);

  double water = 0;  // the level reached; never falls
  uint32_t left = flows;
  while (left > 0) {
    // The next server to be full. A server's level only rises when others
    // freeze below it, so a heap of possibly outdated levels is a lower bound.
    while (!level_heap_.empty()) {
      const auto [stored, r] = level_heap_.front();
      const double fresh = servers_[r].rising > 0 ? Level(servers_[r]) : -1;
      if (servers_[r].rising > 0 && fresh <= stored * (1 + kRateTolerance)) break;
      std::pop_heap(level_heap_.begin(), level_heap_.end(), kSmallestFirst);
      if (servers_[r].rising == 0) {
        level_heap_.pop_back();
      } else {
        level_heap_.back() = {fresh, r};
        std::push_heap(level_heap_.begin(), level_heap_.end(), kSmallestFirst);
      }
    }
    while (!cap_heap_.empty() && frozen_[cap_heap_.front().second]) {
      std::pop_heap(cap_heap_.begin(), cap_heap_.end(), kSmallestFirst);
      cap_heap_.pop_back();
    }
    TPUSIM_CHECK(!level_heap_.empty() || !cap_heap_.empty(), "a flow without cap and without use");

    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    const double full = level_heap_.empty() ? kInfinity : level_heap_.front().first;
    const double cap = cap_heap_.empty() ? kInfinity : cap_heap_.front().first;
    if (cap <= std::max(full, water) * (1 + kRateTolerance)) {
      // In a near tie the cap wins: its value is exact, a quotient is not.
      Freeze(problem, cap_heap_.front().second, cap, rates);
      --left;
      water = std::max(water, cap);
      continue;
    }
    if (full > water * (1 + kRateTolerance)) water = full;
    const Server& server = servers_[level_heap_.front().second];
    for (uint32_t u = server.user_begin; u < server.user_end; ++u) {
      if (frozen_[users_[u].flow]) continue;
      Freeze(problem, users_[u].flow, water, rates);
      --left;
    }
  }
}

}  // namespace tpusim::flow
