#include "workloads/kernels/opaque/body_cost.h"

#include <absl/strings/escaping.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "configs/status_macros.h"
#include "models/timing/kernel_timing.h"
#include "workloads/hlo/analysis/known_values.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/ir/ragged.h"
#include "workloads/hlo/rules/cost.h"
#include "workloads/hlo/rules/integer_arithmetic.h"
#include "workloads/kernels/opaque/limits.h"
#include "workloads/mosaic/assembly.h"
#include "workloads/mosaic/grouped.h"
#include "workloads/mosaic/price.h"

namespace tpusim::kernels {
namespace {

using hlo::Instruction;
using hlo::Opcode;
using hlo::Shape;
using mosaic::Call;

constexpr char kNoBody[] = "it carries no body";

// The serialised kernel; nullopt: the call carries none.
std::optional<std::string> BodyOfCall(const Instruction& call) {
  const auto json =
      nlohmann::json::parse(call.attrs().backend_config(), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return std::nullopt;
  const auto config = json.find("custom_call_config");
  if (config == json.end() || !config->is_object()) return std::nullopt;
  const auto body = config->find("body");
  if (body == config->end() || !body->is_string()) return std::nullopt;
  std::string bytes;
  if (!absl::Base64Unescape(body->get_ref<const std::string&>(), &bytes)) return std::nullopt;
  return bytes;
}

std::string NameOfKernel(const mosaic::Module& kernel) {
  const mosaic::Operation* main = kernel.Main();
  const mosaic::Attribute* name = main == nullptr ? nullptr : main->Find("sym_name");
  return name == nullptr ? "" : name->text;
}

mosaic::Weights WeightsOf(const configs::ChipParams& chip) {
  const configs::VpuParams& vpu = chip.vpu;
  const double cycle = 1 / (chip.clock.value() * static_cast<double>(chip.CoresPerDevice()));
  return {1 / chip.MxuPeak().value(), cycle / static_cast<double>(vpu.alus_per_lane),
          cycle * vpu.eup_cycles_per_vreg / static_cast<double>(vpu.eup_slots),
          cycle * vpu.xlu_cycles_per_vreg / static_cast<double>(vpu.xlu_count),
          1 / chip.hbm.bytes_per_second.value(), 1 / chip.ici.link_bytes_per_second.value()};
}

// Whether text left out the elements of arrays of integers that the program has as constants.
bool LacksConstants(const hlo::Module& module) {
  for (const hlo::Computation* computation : module.computations()) {
    for (const Instruction* i : computation->instructions()) {
      if (i->opcode() != hlo::Opcode::kConstant || !i->shape().IsArray()) continue;
      const bool integral = hlo::IsIntegral(i->shape().element_type);
      if (integral && !i->attrs().literal().has_shape()) return true;
    }
  }
  return false;
}

Call::Array ArrayOf(const Shape& shape) {
  return {shape.dims, CeilDiv(hlo::BitWidth(shape.element_type), 8)};  // number: bits of a type
}


class BodyCosts {
 public:
  BodyCosts(const hlo::Module& module, int64_t partitions, const target::Target& target)
      : values_(module),
        lacks_constants_(LacksConstants(module)),
        partitions_(std::clamp<int64_t>(partitions, 1, limits::kTablePartitions.most())) {
    if (partitions > partitions_) limits::kTablePartitions.Reached(partitions - partitions_);
    facts_.chip = &target.chip();
    facts_.weights = WeightsOf(target.chip());
  }

  // Returns the groups of a call whose sizes are data; nothing for other kernels.
  std::optional<mosaic::GroupedProduct> GroupsOf(const Instruction& call, const std::string& body) {
    const absl::StatusOr<const mosaic::Module*> kernel = KernelOf(body);
    if (!kernel.ok()) return std::nullopt;
    Call facts = facts_;
    for (const Instruction* operand : call.operands()) {
      if (!operand->shape().IsArray()) return std::nullopt;
      facts.operands.push_back(ArrayOf(operand->shape()));
    }
    AddResults(call, &facts);
    std::optional<mosaic::GroupedProduct> found = mosaic::FindGroups(**kernel, facts);
    if (!found) return found;
    const auto is_known = [&](size_t n) { return values_.ArrayOf(*call.operand(n), 0).has_value(); };
    const bool known = is_known(found->group_of_step) || std::ranges::any_of(found->counts, is_known);
    return known ? std::nullopt : found;
  }

  // `grouped`: groups whose sizes are data have those that are written onto the call, or are of
  // about equal size. Error: then also where there are none.
  absl::StatusOr<tpusim::KernelCost> Of(const Instruction& call, const std::string& body,
                                        bool grouped = false) {
    ASSIGN_OR_RETURN(const mosaic::Module* kernel, KernelOf(body));
    std::optional<tpusim::KernelCost> dearest;
    std::set<std::vector<std::vector<int64_t>>> seen;
    bool lacks_table = false;
    for (int64_t partition = 0; partition < partitions_; ++partition) {
      Call facts = facts_;
      facts.place = call.SourceLocation();
      std::vector<std::vector<int64_t>> tables;
      bool everywhere = true;
      for (const Instruction* operand : call.operands()) {
        if (!operand->shape().IsArray()) {
          return NoRule("the kernel has an operand that is no array");
        }
        Call::Array& array = facts.operands.emplace_back(ArrayOf(operand->shape()));
        // Operands are also what a kernel computes with: only what may be a table is evaluated.
        bool small = operand->shape().rank() <= 3;  // number: dimensions of a table
        if (small && std::ssize(facts.operands) > limits::kTableOperands.most()) {
          small = false;
          limits::kTableOperands.Reached();
        }
        auto known = small ? values_.ArrayOf(*operand, partition) : std::nullopt;
        const bool integral = hlo::IsIntegral(operand->shape().element_type);
        lacks_table = lacks_table || (lacks_constants_ && small && integral && !known);
        if (!known) continue;
        tables.push_back(known->elements);
        everywhere = everywhere && known->everywhere;
        array.table = std::make_shared<const mosaic::Table>(
            mosaic::Table{operand->shape().dims, std::move(known->elements)});
      }
      if (!seen.insert(std::move(tables)).second) continue;
      AddResults(call, &facts);
      std::string assumed;
      if (grouped) {
        const auto product = mosaic::FindGroups(*kernel, facts);
        if (!product) return NoRule("the kernel has no groups whose sizes are data");
        ASSIGN_OR_RETURN(assumed, SetGroups(call, *kernel, *product, &facts));
      }
      ASSIGN_OR_RETURN(tpusim::KernelCost cost, mosaic::PriceOf(*kernel, facts));
      if (grouped) cost.add_assumed(std::move(assumed));
      if (!dearest ||
          mosaic::SizeOf(cost, facts.weights) > mosaic::SizeOf(*dearest, facts.weights)) {
        dearest = std::move(cost);
      }
      if (everywhere) break;
    }
    if (lacks_table) {
      dearest->add_assumed(
          "computes all of its blocks: the text that the program was read from leaves out "
          "constants ({...}), perhaps the tables of this kernel; write that text with large "
          "constants");
    }
    return *dearest;
  }

 private:
  absl::StatusOr<const mosaic::Module*> KernelOf(const std::string& body) {
    std::unique_ptr<mosaic::Module>& kernel = kernels_[body];
    if (kernel == nullptr) {
      ASSIGN_OR_RETURN(kernel, mosaic::ReadBody(body));
    }
    return kernel.get();
  }

  static void AddResults(const Instruction& call, Call* facts) {
    for (const Shape* leaf : hlo::Leaves(call.shape())) {
      if (leaf->IsArray()) facts->results.push_back(ArrayOf(*leaf));
    }
  }

  // Fills in the tables of groups. Returns the assumption. Error: sizes of other groups are
  // written onto the call.
  static absl::StatusOr<std::string> SetGroups(const Instruction& call,
                                               const mosaic::Module& kernel,
                                               const mosaic::GroupedProduct& product,
                                               Call* facts) {
    const std::optional<std::vector<int64_t>> stated = hlo::RaggedSizes(call);
    if (stated && std::ssize(*stated) != product.groups) {
      return NoRule(fmt::format("{} has sizes of {} groups and multiplies {}", call.Describe(),
                                stated->size(), product.groups));
    }
    mosaic::GroupedCall made = mosaic::WithSizes(
        product, *facts, stated ? *stated : mosaic::EqualSizes(product, product.rows));
    *facts = std::move(made.call);
    if (!stated) {
      const std::string loop =
          product.axis ? fmt::format("grid.{}", *product.axis) : std::string("loop.0");
      return fmt::format(
          "takes {} steps, as {} groups of about equal size make them (state others with "
          "--routing, --ragged or --trip-count {}/{}=N)",
          made.steps, product.groups, NameOfKernel(kernel), loop);
    }
    const auto [least, most] = std::ranges::minmax(*stated);
    return fmt::format("takes {} steps, as {} groups of {} to {} rows make them", made.steps,
                       product.groups, least, most);
  }

  const hlo::KnownValues values_;
  bool lacks_constants_;
  int64_t partitions_;
  Call facts_;
  std::map<std::string, std::unique_ptr<mosaic::Module>> kernels_;
};

// The last dimension of the first operand that has as many elements as any.
int64_t HeadSize(const Instruction& call) {
  const Shape* largest = nullptr;
  for (const Instruction* operand : call.operands()) {
    const Shape& shape = operand->shape();
    if (!shape.IsArray() || shape.rank() < 2) continue;
    if (largest == nullptr || shape.ElementCount() > largest->ElementCount()) largest = &shape;
  }
  return largest == nullptr ? 0 : largest->dims.back();
}

CustomCost Estimated(const Instruction& call, const hlo::CarriedEstimate& carried,
                     const std::string& why, const configs::MxuParams& mxu) {
  const hlo::Cost& of = carried.cost;
  CustomCost cost{of.flops, of.transcendentals, of.bytes_read + of.bytes_written, carried.remote};
  const int64_t head = HeadSize(call);
  std::string full;
  if (head > 0 && of.flops > Flops(0)) {
    // Rows stream through, columns fill the arrays; whole products, so never less than there is.
    CustomProduct product{mxu.rows, head, mxu.columns};
    const int64_t each = 2 * product.m * product.k * product.n;
    product.count = CeilDiv(of.flops.value(), each);
    cost.products.push_back(product);
    const double depth = static_cast<double>(head);
    const double taken = static_cast<double>(RoundUp(head, mxu.rows));
    full = fmt::format(", with {:.0f} % of the arrays full, as products {} deep leave them",
                       100 * depth / taken, head);  // number: percent
  }
  cost.assumed.push_back(fmt::format("costs what it estimates of itself{}: {}", full, why));
  return cost;
}

// The TPU compiler adds kernels without a grid (the metadata of ragged products), which compute
// integers on the scalar core, element after element of their results. Of loops whose lengths are
// data nothing more is known.
std::optional<CustomCost> CostOnScalarCore(const Instruction& call, const std::string& body,
                                           const target::Target& target) {
  if (!mosaic::IsAssembly(body) || body.find(" iteration_bounds = ") != std::string::npos) {
    return std::nullopt;
  }
  const auto operations = std::ranges::count(body, '\n');
  int64_t elements = 0;
  CustomCost cost;
  for (const hlo::Shape* leaf : hlo::Leaves(call.shape())) {
    elements += leaf->ElementCount();
    cost.bytes += leaf->ByteSize();
  }
  cost.time = ToTime(Cycles(operations * elements), target.chip().clock);
  cost.assumed.push_back(fmt::format(
      "executes the {} lines of its text once for each of its {} results, a cycle a line",
      operations, elements));
  return cost;
}

// Returns the cost of the body, or else of the estimate that stands beside it.
OpenCost CostOfBody(const Instruction& call, BodyCosts& costs, const KernelTrips& trips,
                    const target::Target& target) {
  const std::optional<std::string> body = BodyOfCall(call);
  if (const auto scalar = body ? CostOnScalarCore(call, *body, target) : std::nullopt) {
    return {*scalar};
  }
  OpenCost found;
  found.unpriced = kNoBody;
  if (body) {
    const absl::StatusOr<tpusim::KernelCost> price = costs.Of(call, *body);
    absl::StatusOr<OpenCost> priced =
        price.ok() ? OpenCostOf(*price, trips) : absl::StatusOr<OpenCost>(price.status());
    if (priced.ok()) {
      found = *std::move(priced);
    } else {
      found.unpriced = Message(priced.status());
    }
    if (found.unpriced.empty()) return found;
    if (const auto grouped = costs.Of(call, *body, /*grouped=*/true); price.ok() && grouped.ok()) {
      absl::StatusOr<OpenCost> sized = OpenCostOf(*grouped, trips);
      if (sized.ok() && sized->unpriced.empty()) return *std::move(sized);
    }
  }
  if (const auto carried = hlo::CarriedCost(call)) {
    return {Estimated(call, *carried, found.unpriced, target.chip().mxu)};
  }
  return found;
}

}  // namespace

std::string NameOfBody(const Instruction& call) {
  const std::optional<std::string> body = IsPallasCall(call) ? BodyOfCall(call) : std::nullopt;
  if (!body) return "";
  const auto module = mosaic::ReadBody(*body);
  return module.ok() ? NameOfKernel(**module) : "";
}

std::vector<BodyPrice> BodyPrices(const hlo::Module& module, int64_t partitions,
                                  const target::Target& target) {
  std::vector<BodyPrice> prices;
  std::optional<BodyCosts> costs;
  for (const hlo::Computation* computation : module.PostOrder()) {
    for (const Instruction* call : computation->instructions()) {
      if (!IsPallasCall(*call)) continue;
      if (!costs) costs.emplace(module, partitions, target);
      const std::optional<std::string> body = BodyOfCall(*call);
      prices.push_back({call, body ? costs->Of(*call, *body)
                                   : absl::StatusOr<tpusim::KernelCost>(NoRule(kNoBody))});
    }
  }
  return prices;
}

std::map<const Instruction*, mosaic::GroupedProduct> GroupedProducts(
    const hlo::Module& module, const KernelTrips& trips, const target::Target& target) {
  std::map<const Instruction*, mosaic::GroupedProduct> products;
  std::optional<BodyCosts> costs;
  for (const hlo::Computation* computation : module.PostOrder()) {
    for (const Instruction* call : computation->instructions()) {
      if (!IsPallasCall(*call) || (IsPriced(*call) && !TimeAlone(*call))) continue;
      const std::optional<std::string> body = BodyOfCall(*call);
      if (!body) continue;
      if (!costs) costs.emplace(module, /*partitions=*/1, target);
      const auto product = costs->GroupsOf(*call, *body);
      if (!product) continue;
      const absl::StatusOr<tpusim::KernelCost> price = costs->Of(*call, *body);
      if (!price.ok()) continue;
      const absl::StatusOr<OpenCost> counted = OpenCostOf(*price, trips);
      if (counted.ok() && !counted->unpriced.empty()) products.emplace(call, *product);
    }
  }
  return products;
}

std::vector<std::string> SetBodyCosts(hlo::Module& module, int64_t partitions,
                                      const KernelTrips& trips, const target::Target& target) {
  std::vector<std::string> calls;
  std::optional<BodyCosts> costs;
  for (hlo::Computation* computation : module.PostOrder()) {
    for (Instruction* call : computation->instructions()) {
      const std::optional<Picoseconds> time = TimeAlone(*call);
      if (!IsPallasCall(*call) || (IsPriced(*call) && !time)) continue;
      if (!costs) costs.emplace(module, partitions, target);
      calls.push_back(call->name());
      OpenCost found = CostOfBody(*call, *costs, trips, target);
      if (found.unpriced.empty()) {
        if (time) found.cost.time = time;
        SetCustomCost(call, found.cost);
      } else if (!time) {
        SetUnpriced(call, found);
      }
    }
  }
  return calls;
}

}  // namespace tpusim::kernels
