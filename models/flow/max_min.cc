#include "models/flow/max_min.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "configs/status_macros.h"

namespace tpusim::flow {

namespace {

// The most numbers of which the smallest is found without a heap.
constexpr size_t kFew = 32;

}  // namespace

void MaxMinSolver::Smallest::Order() {
  is_heap_ = entries_.size() > kFew;
  if (is_heap_) {
    std::make_heap(entries_.begin(), entries_.end(), std::greater<>());
    at_ = 0;
  } else {
    Look();
  }
}

void MaxMinSolver::Smallest::Look() {
  at_ = static_cast<size_t>(std::min_element(entries_.begin(), entries_.end()) - entries_.begin());
}

void MaxMinSolver::Smallest::Pop() {
  if (is_heap_) {
    std::pop_heap(entries_.begin(), entries_.end(), std::greater<>());
    entries_.pop_back();
  } else {
    entries_[at_] = entries_.back();
    entries_.pop_back();
    Look();
  }
}

void MaxMinSolver::Smallest::Raise(double number) {
  if (is_heap_) {
    std::pop_heap(entries_.begin(), entries_.end(), std::greater<>());
    entries_.back().first = number;
    std::push_heap(entries_.begin(), entries_.end(), std::greater<>());
  } else {
    entries_[at_].first = number;
    Look();
  }
}

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
  caps_.Clear();
  for (uint32_t f = 0; f < flows; ++f) {
    if (std::isfinite(problem.cap[f])) caps_.Add(problem.cap[f], f);
  }
  caps_.Order();
  levels_.Clear();
  for (uint32_t r = 0; r < resources; ++r) {
    if (servers_[r].rising > 0) levels_.Add(Level(servers_[r]), r);
  }
  levels_.Order();

  double water = 0;  // the level reached; never falls
  uint32_t left = flows;
  while (left > 0) {
    // The next server to be full. A server's level only rises when others freeze below it, so the
    // smallest of possibly outdated levels is a lower bound.
    while (!levels_.empty()) {
      const auto [stored, r] = levels_.front();
      if (servers_[r].rising == 0) {
        levels_.Pop();
        continue;
      }
      const double fresh = Level(servers_[r]);
      if (fresh <= stored * (1 + kRateTolerance)) break;
      levels_.Raise(fresh);
    }
    while (!caps_.empty() && frozen_[caps_.front().second]) caps_.Pop();
    TPUSIM_CHECK(!levels_.empty() || !caps_.empty(), "a flow without cap and without use");

    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    const double full = levels_.empty() ? kInfinity : levels_.front().first;
    const double cap = caps_.empty() ? kInfinity : caps_.front().first;
    if (cap <= std::max(full, water) * (1 + kRateTolerance)) {
      // In a near tie the cap wins: its value is exact, a quotient is not.
      Freeze(problem, caps_.front().second, cap, rates);
      --left;
      water = std::max(water, cap);
      continue;
    }
    if (full > water * (1 + kRateTolerance)) water = full;
    const Server& server = servers_[levels_.front().second];
    for (uint32_t u = server.user_begin; u < server.user_end; ++u) {
      if (frozen_[users_[u].flow]) continue;
      Freeze(problem, users_[u].flow, water, rates);
      --left;
    }
  }
}

}  // namespace tpusim::flow
