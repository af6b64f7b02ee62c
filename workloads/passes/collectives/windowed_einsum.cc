#include "workloads/passes/collectives/windowed_einsum.h"

#include <fmt/format.h>

#include "configs/status_macros.h"
#include "workloads/hlo/ir/walk.h"
#include "workloads/hlo/rules/cost.h"
#include "workloads/passes/collectives/collectives.h"
#include "workloads/passes/collectives/reasons.h"
#include "workloads/passes/collectives/ring.h"

namespace tpusim::passes {

absl::StatusOr<WindowedEinsumProfit> ProfitOf(const WindowedEinsum& einsum,
                                              const cost::CollectiveGroups& groups,
                                              const target::Target& target) {
  const configs::Policy& rules = target.policy();
  if (rules.windowed_flops_per_byte == 0) return WindowedEinsumProfit{false, "not on this chip"};
  const bool scatters = einsum.exchange == WindowedEinsum::Exchange::kScatter;
  if (!(scatters ? rules.windowed_scatters : rules.windowed_gathers)) {
    return WindowedEinsumProfit{false, "a flag forbids it"};
  }
  const auto members = static_cast<int64_t>(groups.partitions[0].size());
  if (members % kMembersMultiple != 0 || members % rules.windowed_einsum_member_multiple != 0 ||
      members > rules.windowed_einsum_most_members) {
    return WindowedEinsumProfit{false, fmt::format("groups of {}", members)};
  }
  const bool square = groups.filled_extents == std::vector<int64_t>{2, 2};
  if (square && rules.windowed_einsum_square_factor == 0) {
    return WindowedEinsumProfit{false, "a plane of 2x2"};
  }
  if (einsum.shared) return WindowedEinsumProfit{false, "gathered for other products, too"};
  if (rules.windowed_least_bytes >= Bytes(0)) {
    const bool large = einsum.whole().ByteSize() >= rules.windowed_least_bytes;
    return WindowedEinsumProfit{large, "by the size that a flag gives"};
  }
  ASSIGN_OR_RETURN(const hlo::Cost product, hlo::CostOf(*einsum.dot));
  const double has = static_cast<double>(product.flops.value()) /
                     static_cast<double>(einsum.whole().ByteSize().value());
  const double needs = 2.0 / static_cast<double>(members) *
                       static_cast<double>(rules.windowed_flops_per_byte) *
                       (square ? rules.windowed_einsum_square_factor : 1);
  return WindowedEinsumProfit{has > needs,
                              fmt::format("{:.0f} FLOPs per byte, {:.0f} needed", has, needs)};
}

absl::StatusOr<bool> MakeWindowedEinsums(hlo::Module& module, const PassContext& context) {
  bool changed = false;
  int64_t channel = FirstFreeChannel(module);
  for (hlo::Computation* computation : context.facts->CallsOf(module).control()) {
    for (hlo::Instruction* i : hlo::Walk(computation->PostOrder())) {
      const std::optional<WindowedEinsum> einsum = MatchWindowedEinsum(i);
      if (!einsum) continue;
      ASSIGN_OR_RETURN(const cost::CollectiveGroups groups,
                       context.cost.GroupsOf(*einsum->collective));
      ASSIGN_OR_RETURN(const WindowedEinsumProfit profit,
                       ProfitOf(*einsum, groups, context.target));
      context.records.Add(profit.pays ? reasons::kEinsumWindowed : reasons::kEinsumKept,
                          einsum->dot->name(),
                          {{"collective", einsum->collective->name()}, {"why", profit.reason}});
      if (!profit.pays) continue;
      channel = RewriteWindowedEinsum(*einsum, groups.partitions, channel);
      changed = true;
    }
  }
  return changed;
}

}  // namespace tpusim::passes
