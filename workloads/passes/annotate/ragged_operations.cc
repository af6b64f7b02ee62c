#include "workloads/passes/annotate/ragged_operations.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <unordered_set>

#include "configs/status_macros.h"
#include "workloads/hlo/analysis/loops.h"
#include "workloads/hlo/analysis/underlying.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/ragged.h"
#include "workloads/kernels/opaque/body_cost.h"
#include "workloads/kernels/opaque/custom_cost.h"

namespace tpusim::passes {
namespace {

using hlo::Instruction;
using hlo::Opcode;

bool IsRagged(const Instruction& i) {
  return i.opcode() == Opcode::kRaggedDot || i.opcode() == Opcode::kRaggedAllToAll;
}

// Returns the operand with one size per group, or per update.
const Instruction* SizesOperand(const Instruction& i) {
  return i.operand(i.opcode() == Opcode::kRaggedDot ? 2 : 3);  // number: the place of an operand
}

// Returns the exchange that brings rows to a product of its computation, the nearest one in front
// of it; null: none does.
const Instruction* BringsRowsTo(const Instruction& product) {
  std::deque<const Instruction*> next = {&product};
  std::unordered_set<const Instruction*> seen;
  while (!next.empty()) {
    const Instruction* i = next.front();
    next.pop_front();
    if (i->opcode() == Opcode::kRaggedAllToAll) return i;
    for (const Instruction* operand : i->operands()) {
      if (seen.insert(operand).second) next.push_back(operand);
    }
  }
  return nullptr;
}

// Returns the value that the tables of a kernel are computed of, as far as it has a number for each
// group: JAX computes the tables anew for every product of the same groups.
const Instruction* SizesBehind(const Instruction* table, int64_t groups) {
  const auto has_groups = [&](const Instruction* value) {
    const hlo::Shape& shape = value->shape();
    return shape.IsArray() && shape.rank() == 1 &&
           (shape.dims[0] == groups || shape.dims[0] == groups + 1);
  };
  const auto is_constant = [](const Instruction* value) {
    while (value->opcode() == Opcode::kBroadcast) value = hlo::Underlying(value->operand(0));
    return value->opcode() == Opcode::kConstant || value->opcode() == Opcode::kIota;
  };
  const Instruction* source = hlo::Underlying(table);
  while (true) {
    const Instruction* next = nullptr;
    for (const Instruction* operand : source->operands()) {
      const Instruction* value = hlo::Underlying(operand);
      if (next == nullptr && has_groups(value) && !is_constant(value)) next = value;
    }
    if (next == nullptr) return source;
    source = next;
  }
}

// Returns whether an option states the cost of a kernel, whatever its groups are.
bool HasStatedCost(const Instruction& call, const PassContext& context) {
  return std::ranges::any_of(context.stated->kernel_costs, [&](const kernels::NamedCost& cost) {
    return kernels::IsNamed(call, cost.name);
  });
}

}  // namespace

RaggedOperations::RaggedOperations(const hlo::Module& module, const PassContext& context)
    : routing_(context.stated->routing),
      partitions_(context.stated->partitions),
      calls_(module),
      kernels_(kernels::GroupedProducts(
          module,
          context.stated->kernel_trips
              ? context.stated->kernel_trips
              : [](const tpusim::KernelLoop&) { return std::optional<int64_t>(); },
          context.target)) {
  std::erase_if(kernels_, [&](const auto& kernel) { return HasStatedCost(*kernel.first, context); });
  for (const hlo::Computation* computation : module.computations()) {
    for (const Instruction* i : computation->instructions()) {
      if (!Contains(*i)) continue;
      auto& sources = sources_[i->opcode()];
      sources.emplace(SourceOf(*i), sources.size());
      if (i->opcode() == Opcode::kRaggedAllToAll) continue;
      if (const Instruction* exchange = BringsRowsTo(*i)) {
        exchange_of_.emplace(i, exchange);
        exchange_of_rows_.emplace(RowsOf(*i), exchange);
        if (held_ == 0) held_ = GroupsOf(*i);
      }
    }
  }
}

bool RaggedOperations::Contains(const Instruction& i) const {
  return IsRagged(i) || kernels_.contains(&i);
}

const mosaic::GroupedProduct* RaggedOperations::KernelOf(const Instruction& i) const {
  const auto found = kernels_.find(&i);
  return found == kernels_.end() ? nullptr : &found->second;
}

int64_t RaggedOperations::RowsOf(const Instruction& i) const {
  if (const mosaic::GroupedProduct* kernel = KernelOf(i)) return kernel->rows;
  const hlo::Shape& shape = i.operand(0)->shape();
  return shape.dims[i.opcode() == Opcode::kRaggedDot ? hlo::RaggedDimension(i) : 0];
}

int64_t RaggedOperations::GroupsOf(const Instruction& i) const {
  if (const mosaic::GroupedProduct* kernel = KernelOf(i)) return kernel->groups;
  return std::max<int64_t>(1, SizesOperand(i)->shape().ElementCount());
}

const Instruction* RaggedOperations::SourceOf(const Instruction& i) const {
  const mosaic::GroupedProduct* kernel = KernelOf(i);
  if (kernel == nullptr) return hlo::Underlying(SizesOperand(i));
  const size_t table = kernel->offsets.empty() ? kernel->group_of_step : kernel->offsets[0];
  return SizesBehind(i.operand(static_cast<int64_t>(table)), kernel->all_groups);
}

absl::StatusOr<int64_t> RaggedOperations::MembersOf(const Instruction& exchange) const {
  ASSIGN_OR_RETURN(const auto groups, hlo::ReplicaGroups(exchange, partitions_));
  return groups.empty() ? GroupsOf(exchange) : static_cast<int64_t>(groups[0].size());
}

const Instruction* RaggedOperations::ExchangeOf(const Instruction& product) const {
  if (const auto own = exchange_of_.find(&product); own != exchange_of_.end()) return own->second;
  const auto by_rows = exchange_of_rows_.find(RowsOf(product));
  return by_rows == exchange_of_rows_.end() ? nullptr : by_rows->second;
}

int64_t RaggedOperations::BalancedRows(const Instruction& product) const {
  const Instruction* exchange = ExchangeOf(product);
  return exchange == nullptr ? RowsOf(product)
                             : std::min(RowsOf(product), hlo::RowsSent(*exchange));
}

absl::StatusOr<RoutedRows> RaggedOperations::Route(const Instruction& i) const {
  const bool product = i.opcode() != Opcode::kRaggedAllToAll;
  const mosaic::GroupedProduct* kernel = KernelOf(i);
  const Instruction* exchange = product ? ExchangeOf(i) : &i;
  RoutedRows routed;
  if (exchange == nullptr) {
    ASSIGN_OR_RETURN(routed, RouteHere(i));
  } else {
    ASSIGN_OR_RETURN(const int64_t devices, MembersOf(*exchange));
    const int64_t updates = std::max(GroupsOf(*exchange), devices);
    const int64_t experts = product     ? GroupsOf(i) * devices
                            : held_ > 0 ? held_ * devices
                                        : updates / devices * devices;
    ASSIGN_OR_RETURN(const std::vector<double> shares, SharesOf(i, experts, devices));
    // The larger of the two arrays is what one device may get of all others, on the way to the
    // experts or back.
    routed = product ? RowsOfHotDevice(shares, devices, BalancedRows(i), RowsOf(i))
                     : RowsSentTo(shares, devices, hlo::RowsSent(i),
                                  std::max(RowsOf(i), i.operand(1)->shape().dims[0]));
  }
  if (kernel != nullptr) routed.rows = mosaic::OffTiles(*kernel, std::move(routed.rows));
  return routed;
}

// Routes a product that no exchange brings rows to: each device has all rows, and a part of the
// experts or all.
absl::StatusOr<RoutedRows> RaggedOperations::RouteHere(const Instruction& product) const {
  const int64_t held = GroupsOf(product), rows = RowsOf(product);
  const mosaic::GroupedProduct* kernel = KernelOf(product);
  const int64_t all = kernel != nullptr && kernel->all_groups > held ? kernel->all_groups
                      : routing_.layers.empty()
                          ? held
                          : static_cast<int64_t>(routing_.layers[0].size());
  const int64_t devices = all % held == 0 ? all / held : 1;
  ASSIGN_OR_RETURN(const std::vector<double> shares, SharesOf(product, devices * held, devices));
  return RowsOfHotDevice(shares, devices, CeilDiv(rows, devices), rows);
}

absl::StatusOr<std::vector<double>> RaggedOperations::SharesOf(const Instruction& i,
                                                               int64_t experts,
                                                               int64_t devices) const {
  if (routing_.layers.empty()) return ZipfShares(routing_.exponent, experts, devices);
  for (size_t n = 0; n < routing_.layers.size(); ++n) {
    if (static_cast<int64_t>(routing_.layers[n].size()) == experts) continue;
    return absl::OutOfRangeError(fmt::format(
        "--routing {}: layer {} has {} counts, expected are {}, the experts of {}", routing_.text,
        n, routing_.layers[n].size(), experts, i.Describe()));
  }
  ASSIGN_OR_RETURN(const auto layers, LayersOf(i));
  return CountedShares(layers, devices);
}

// Returns the layers that an operation is executed in: one, by its place among operations whose
// sizes are other data; or all that a loop passes through.
absl::StatusOr<std::vector<std::vector<int64_t>>> RaggedOperations::LayersOf(
    const Instruction& i) const {
  const auto& layers = routing_.layers;
  if (layers.size() == 1) return layers;
  const Instruction* loop = calls_.LoopOf(*i.parent());
  const std::optional<int64_t> trips = loop == nullptr ? std::nullopt : hlo::TripCount(*loop);
  if (trips == static_cast<int64_t>(layers.size())) return layers;
  const auto& sources = sources_.at(i.opcode());
  if (!trips && sources.size() % layers.size() == 0) {
    const size_t place = sources.at(SourceOf(i));
    return std::vector<std::vector<int64_t>>{layers[place / (sources.size() / layers.size())]};
  }
  return absl::OutOfRangeError(fmt::format(
      "--routing {}: {} layers, expected are {} ({}), or 1 for all", routing_.text, layers.size(),
      trips ? *trips : static_cast<int64_t>(sources.size()), i.Describe()));
}

}  // namespace tpusim::passes
