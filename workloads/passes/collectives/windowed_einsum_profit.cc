#include "workloads/passes/collectives/windowed_einsum_profit.h"

#include <fmt/format.h>

#include <cstdint>
#include <vector>

#include "workloads/hlo/ir/attributes.h"

namespace tpusim::passes {
namespace {

constexpr int64_t kMostMembers = 32;  // xla::SpmdPartitionerOptions::max_windowed_einsum_iteration

double FlopsOf(const hlo::Instruction& dot) {
  double flops = 2;
  for (const int64_t extent : dot.shape().dims) flops *= static_cast<double>(extent);
  const hlo::Shape& left = dot.operand(0)->shape();
  for (const int64_t d : hlo::GetDotDims(dot).lhs_contracting) {
    flops *= static_cast<double>(left.dims[d]);
  }
  return flops;
}

// Of groups whose members are not neighbours.
constexpr int64_t kMostChipsWithoutRings = 16;

}  // namespace

WindowedEinsumProfit ProfitOf(const WindowedEinsum& einsum, const cost::CollectiveGroups& groups,
                              const target::Target& target) {
  const configs::CompilerRules& rules = target.chip().compiler;
  if (rules.windowed_flops_per_byte == 0) return {false, "not on this chip"};
  if (rules.routed_above_chips > 0 &&
      target.config().topology.ChipsPerSlice() > rules.routed_above_chips) {
    return {false, "permutes are synchronous"};
  }
  if (target.config().topology.chips() > rules.windowed_up_to_chips) {
    return {false, "what is done on slices this large is not known"};
  }
  const auto members = static_cast<int64_t>(groups.partitions[0].size());
  if (members % 4 != 0 || members > kMostMembers) {
    return {false, fmt::format("groups of {}", members)};
  }
  // (The TPU compiler windows these too. Their permutes make every device a class of its own.)
  if (!groups.along_links && target.config().topology.chips() > kMostChipsWithoutRings) {
    return {false, "members are not neighbours, on a large slice"};
  }
  if (groups.filled_extents == std::vector<int64_t>{2, 2}) return {false, "a plane of 2x2"};
  const hlo::Instruction& whole = einsum.form == WindowedEinsum::Form::kScatter
                                      ? *einsum.dot
                                      : *einsum.collective;
  const double has = FlopsOf(*einsum.dot) / static_cast<double>(whole.shape().ByteSize().value());
  const double needs = 2.0 / static_cast<double>(members) *
                       static_cast<double>(rules.windowed_flops_per_byte);
  return {has > needs, fmt::format("{:.0f} FLOPs per byte, {:.0f} needed", has, needs)};
}

}  // namespace tpusim::passes
