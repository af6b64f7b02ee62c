#include "workloads/search/policies.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "workloads/search/limits.h"
#include "workloads/sharding/stated/stated_shardings.h"

namespace tpusim::search {
namespace {

using remat::NameUse;
using remat::Policy;
using remat::StatedPolicy;

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

// Returns base^exponent, or the largest number if that is larger.
int64_t Power(int64_t base, size_t exponent) {
  int64_t power = 1;
  for (size_t i = 0; i < exponent; ++i) {
    if (__builtin_mul_overflow(power, base, &power)) return std::numeric_limits<int64_t>::max();
  }
  return power;
}

// The empty combination and those that save the names with the fewest bytes, one more each time.
std::vector<std::vector<StatedPolicy>> Widened(std::vector<NameUse> names, int64_t most) {
  std::ranges::stable_sort(names, {}, &NameUse::bytes);
  std::vector<std::vector<StatedPolicy>> all = {{}};
  for (const NameUse& name : names) {
    if (std::ssize(all) == most) break;
    all.push_back(all.back());
    all.back().push_back(Stated(name.name, Policy::kSaved));
  }
  return all;
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
  const int64_t most = limits::kPolicies.most(), all = Power(3, names.size());
  if (all <= most) return Combinations(names, {Policy::kSaved, Policy::kOffloaded});
  std::vector<std::vector<StatedPolicy>> some = Power(2, names.size()) <= most
                                                    ? Combinations(names, {Policy::kSaved})
                                                    : Widened(std::move(names), most);
  limits::kPolicies.Reached(all - std::ssize(some));
  return some;
}

}  // namespace tpusim::search
