#include "workloads/search/policies.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string>

#include "workloads/sharding/stated/stated_shardings.h"

namespace tpusim::search {
namespace {

using remat::NameUse;
using remat::Policy;
using remat::StatedPolicy;

// Each is a module of its own.
constexpr size_t kMostCombinations = 32;

StatedPolicy Stated(const std::string& name, Policy policy) {
  return {name, policy, fmt::format("{}={}", name, remat::ToString(policy))};
}

// Returns all ways to give each name one of the policies.
std::vector<std::vector<StatedPolicy>> Combinations(const std::vector<NameUse>& names,
                                                    const std::vector<Policy>& policies) {
  std::vector<std::vector<StatedPolicy>> all = {{}};
  for (const NameUse& name : names) {
    const size_t before = all.size();
    for (const Policy policy : policies) {
      for (size_t i = 0; i < before; ++i) {
        all.push_back(all[i]);
        all.back().push_back(Stated(name.name, policy));
      }
    }
  }
  return all;
}

size_t Power(size_t base, size_t exponent) {
  size_t power = 1;
  for (size_t i = 0; i < exponent && power <= kMostCombinations; ++i) power *= base;
  return power;
}

}  // namespace

std::vector<std::vector<StatedPolicy>> PoliciesToTry(std::vector<NameUse> names,
                                                     const std::vector<StatedPolicy>& stated) {
  std::erase_if(names, [&](const NameUse& use) {
    return use.recomputed == 0 || !use.refused.empty() ||
           std::ranges::any_of(stated, [&](const StatedPolicy& policy) {
             return sharding::NameFits(policy.name, use.name);
           });
  });
  if (Power(3, names.size()) <= kMostCombinations) {
    return Combinations(names, {Policy::kSaved, Policy::kOffloaded});
  }
  if (Power(2, names.size()) <= kMostCombinations) return Combinations(names, {Policy::kSaved});
  std::ranges::stable_sort(names, {}, &NameUse::bytes);
  std::vector<std::vector<StatedPolicy>> all = {{}};
  for (const NameUse& name : names) {
    if (all.size() == kMostCombinations) break;
    all.push_back(all.back());
    all.back().push_back(Stated(name.name, Policy::kSaved));
  }
  return all;
}

}  // namespace tpusim::search
