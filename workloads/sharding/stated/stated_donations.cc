#include "workloads/sharding/stated/stated_donations.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <set>

#include "configs/status_macros.h"
#include "workloads/sharding/normalised/normalise.h"
#include "workloads/sharding/stated/stated_shardings.h"
#include "workloads/sharding/types/axes.h"

namespace tpusim::sharding {
namespace {

using hlo::Instruction;

// Returns the numbers of the arguments that a pattern names.
absl::StatusOr<std::vector<int64_t>> Named(const std::string& pattern, std::string_view option,
                                           const NormalisedModule& module) {
  std::vector<int64_t> found;
  for (const Instruction* argument : module.module->entry()->parameters()) {
    if (NameFits(pattern, argument->op_name()) || NameFits(pattern, argument->name())) {
      found.push_back(argument->attrs().parameter_number());
    }
  }
  if (found.empty()) return NoArgument(option, pattern, pattern, module);
  return found;
}

bool IsDonated(int64_t argument, const hlo::pb::HloModuleProto& fields) {
  const auto of = [&](const auto& entry) { return entry.parameter_number() == argument; };
  return std::ranges::any_of(fields.input_output_alias().entries(), of) ||
         std::ranges::any_of(fields.buffer_donor().entries(), of);
}

// The first result that the argument can lend its buffer to; -1: none.
int64_t ResultFor(const Instruction& argument, const std::set<int64_t>& taken,
                  const NormalisedModule& module) {
  const Instruction* root = module.module->entry()->root();
  const std::vector<const Instruction*> results =
      root->shape().IsTuple()
          ? std::vector<const Instruction*>(root->operands().begin(), root->operands().end())
          : std::vector<const Instruction*>{root};
  const Sharding* own = SaidOf(&argument, module);
  for (size_t n = 0; n < results.size(); ++n) {
    const auto number = static_cast<int64_t>(n);
    if (taken.contains(number) || !hlo::SameDims(results[n]->shape(), argument.shape())) continue;
    const Sharding* said = SaidOf(results[n], module);
    const bool alike = own != nullptr && said != nullptr ? SamePlacement(*own, *said)
                                                         : own == nullptr || said == nullptr;
    if (alike) return number;
  }
  return -1;
}

}  // namespace

absl::Status StateDonated(const std::vector<std::string>& arguments, NormalisedModule& module) {
  if (arguments.empty()) return absl::OkStatus();
  hlo::pb::HloModuleProto& fields = module.module->mutable_fields();
  const std::vector<Instruction*> parameters = module.module->entry()->parameters();
  const bool is_tuple = module.module->entry()->root()->shape().IsTuple();
  std::set<int64_t> taken;
  for (const auto& entry : fields.input_output_alias().entries()) {
    taken.insert(entry.output_shape_index().empty() ? 0 : entry.output_shape_index(0));
  }
  for (const std::string& pattern : arguments) {
    ASSIGN_OR_RETURN(const std::vector<int64_t> named, Named(pattern, "--donate-argument", module));
    bool any = false;
    for (const int64_t n : named) {
      if (IsDonated(n, fields)) {
        any = true;
        continue;
      }
      if (!parameters[n]->shape().IsArray()) continue;
      const int64_t result = ResultFor(*parameters[n], taken, module);
      if (result < 0) continue;
      any = true;
      taken.insert(result);
      auto* entry = fields.mutable_input_output_alias()->add_entries();
      entry->set_parameter_number(n);
      if (is_tuple) entry->add_output_shape_index(result);
      entry->set_kind(hlo::pb::HloInputOutputAliasProto::MAY_ALIAS);
    }
    if (any) continue;
    const Instruction& first = *parameters[named[0]];
    return UserError(
        fmt::format("--donate-argument {}: no result is left that {} of {} could lend its buffer "
                    "to: of the same "
                    "type and sharding",
                    pattern, ArgumentName(first), first.shape().ToString()));
  }
  return absl::OkStatus();
}

absl::Status StateKept(const std::vector<std::string>& arguments, NormalisedModule& module) {
  if (arguments.empty()) return absl::OkStatus();
  std::set<int64_t> kept;
  for (const std::string& pattern : arguments) {
    ASSIGN_OR_RETURN(const std::vector<int64_t> named, Named(pattern, "--keep-argument", module));
    kept.insert(named.begin(), named.end());
  }
  const auto drop = [&](auto* entries) {
    entries->erase(
        std::remove_if(entries->begin(), entries->end(),
                       [&](const auto& entry) { return kept.contains(entry.parameter_number()); }),
        entries->end());
  };
  hlo::pb::HloModuleProto& fields = module.module->mutable_fields();
  drop(fields.mutable_input_output_alias()->mutable_entries());
  drop(fields.mutable_buffer_donor()->mutable_entries());
  return absl::OkStatus();
}

}  // namespace tpusim::sharding
