#include "workloads/sharding/stated/stated_shardings.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

#include "configs/name_value.h"
#include "configs/names.h"
#include "configs/number_text.h"
#include "configs/status_macros.h"
#include "workloads/sharding/normalised/normalise.h"
#include "workloads/sharding/types/axes.h"

namespace tpusim::sharding {
namespace {

using hlo::Instruction;

// Axes of the old mesh in the new one; the program must not have cut them.
absl::StatusOr<Axes> InMesh(const Axes& axes, const Mesh& from, const Mesh& to) {
  Axes there;
  for (const AxisRef& axis : Joined(axes)) {
    const std::string& name = from.axes[axis.axis].name;
    if (axis != FullAxis(from, axis.axis)) {
      return NoRule(fmt::format(
          "--mesh: the program splits a dimension by a part of axis '{}', which has no like in "
          "another mesh",
          name));
    }
    const auto found = std::ranges::find(to.axes, name, &MeshAxis::name);
    if (found != to.axes.end()) {
      there.push_back(FullAxis(to, static_cast<int32_t>(found - to.axes.begin())));
    }
  }
  return there;
}

absl::Status Move(Sharding& sharding, const Mesh& from, const Mesh& to) {
  for (DimSharding& dim : sharding.dims) {
    ASSIGN_OR_RETURN(dim.axes, InMesh(dim.axes, from, to));
  }
  ASSIGN_OR_RETURN(sharding.replicated, InMesh(sharding.replicated, from, to));
  ASSIGN_OR_RETURN(sharding.unreduced, InMesh(sharding.unreduced, from, to));
  return absl::OkStatus();
}

absl::Status CheckDivides(const Instruction& value, const Sharding& sharding, const Mesh& mesh,
                          std::string_view what, std::string_view option) {
  for (int64_t d = 0; d < value.shape().rank(); ++d) {
    const int64_t size = value.shape().dims[static_cast<size_t>(d)], shards = sharding.Shards(d);
    if (size % shards == 0) continue;
    return UserError(fmt::format(
        "{}: {} {} of {} has {} elements along dimension {}, which {} shards do not divide ({})",
        option, what, ArgumentName(value), value.shape().ToString(), size, d, shards,
        ToString(sharding, mesh)));
  }
  return absl::OkStatus();
}

// Whether it says itself what its devices exchange, or asks which one it is on.
bool CountsDevices(const NormalisedModule& module) {
  return std::ranges::any_of(module.partitioned, [](const hlo::Computation* computation) {
    return std::ranges::any_of(computation->instructions(), [](const Instruction* i) {
      return hlo::IsCollective(i->opcode()) || i->opcode() == hlo::Opcode::kPartitionId;
    });
  });
}

// Returns the results of the program whose sharding it states.
std::vector<const Instruction*> ResultsOf(const NormalisedModule& module) {
  std::vector<const Instruction*> results;
  const Instruction* root = module.module->entry()->root();
  for (const Instruction* value : root->operands()) results.push_back(value);
  if (root->shape().IsArray()) results = {root};
  std::erase_if(results, [&](const Instruction* value) {
    const auto said = module.annotations.find(value);
    return said == module.annotations.end() || !said->second.is_result;
  });
  return results;
}

void Say(const Instruction* value, Sharding sharding, std::string reason, bool is_result,
         NormalisedModule& module) {
  Annotation said;
  said.leaves.emplace_back(std::move(sharding));
  said.reason = std::move(reason);
  said.is_result = is_result;
  module.annotations[value] = std::move(said);
}

}  // namespace

const std::string& ArgumentName(const Instruction& argument) {
  return argument.op_name().empty() ? argument.name() : argument.op_name();
}

const Sharding* SaidOf(const Instruction* value, const NormalisedModule& module) {
  const auto said = module.annotations.find(value);
  if (said == module.annotations.end() || said->second.leaves.size() != 1) return nullptr;
  return said->second.leaves[0] ? &*said->second.leaves[0] : nullptr;
}

absl::Status NoArgument(std::string_view option, std::string_view stated,
                        const std::string& pattern, const NormalisedModule& module) {
  std::vector<std::string> names;
  for (const Instruction* argument : module.module->entry()->parameters()) {
    names.push_back(ArgumentName(*argument));
  }
  const std::string nearest = configs::Nearest(pattern, names);
  return UserError(
      fmt::format("{} {}: the program has no argument '{}'{}", option, stated, pattern,
                  nearest.empty() ? "" : fmt::format(", the nearest is '{}'", nearest)));
}

// Names have brackets, so this is no glob of the shell.
bool NameFits(std::string_view pattern, std::string_view text) {
  size_t p = 0, t = 0, star = std::string_view::npos, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p, ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

absl::StatusOr<std::vector<MeshAxis>> ParseStatedMesh(std::string_view text) {
  const absl::Status malformed = UserError(
      fmt::format("\"{}\" is no mesh, such as data=4,model=8: names of axes with sizes", text));
  std::vector<MeshAxis> axes;
  while (!text.empty()) {
    const size_t end = std::min(text.find(','), text.size());
    const std::string_view axis = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const auto parts = configs::ParseNameAndValue(axis);
    const auto size = parts ? configs::NumberIn<int64_t>(parts->value) : std::nullopt;
    // A name may have any characters but those that separate axes, here or for other tools.
    if (!size || *size < 1 || parts->name.find(';') != parts->name.npos) return malformed;
    const std::string name(parts->name);
    if (std::ranges::find(axes, name, &MeshAxis::name) != axes.end()) return malformed;
    axes.push_back({name, *size});
  }
  if (axes.empty()) return malformed;
  return axes;
}

absl::Status StateMesh(const std::vector<MeshAxis>& axes, NormalisedModule& module) {
  if (axes.empty()) return absl::OkStatus();
  const Mesh from = module.mesh.mesh;
  const Mesh to{axes, {}};
  if (to.size() != from.size() && CountsDevices(module)) {
    return UserError(fmt::format(
        "--mesh: {} has {} devices, the program's {} has {}, which its collectives are for",
        ToString(to), to.size(), ToString(from), from.size()));
  }
  if (!module.manual_regions.empty()) {
    if (axes == from.axes) return absl::OkStatus();
    return UserError(fmt::format(
        "--mesh: the program has a shard_map, whose shapes are those of shards of its own mesh, {}",
        ToString(from)));
  }
  for (auto& [value, said] : module.annotations) {
    for (std::optional<Sharding>& leaf : said.leaves) {
      if (leaf) RETURN_IF_ERROR(Move(*leaf, from, to));
    }
  }
  module.mesh.mesh = to;
  return absl::OkStatus();
}

absl::Status CheckStatedMesh(const NormalisedModule& module) {
  const auto check = [&](const Instruction& value, std::string_view what) {
    const Sharding* sharding = SaidOf(&value, module);
    if (sharding == nullptr || !value.shape().IsArray()) return absl::OkStatus();
    return CheckDivides(value, *sharding, module.mesh.mesh, what, "--mesh");
  };
  for (const Instruction* argument : module.module->entry()->parameters()) {
    RETURN_IF_ERROR(check(*argument, "argument"));
  }
  for (const Instruction* result : ResultsOf(module)) RETURN_IF_ERROR(check(*result, "result"));
  return absl::OkStatus();
}

absl::Status StateArguments(const std::vector<StatedConstraint>& arguments,
                            NormalisedModule& module) {
  const Mesh& mesh = module.mesh.mesh;
  std::vector<const Instruction*> results = ResultsOf(module);
  const std::vector<Instruction*> parameters = module.module->entry()->parameters();
  std::unordered_map<std::string_view, const Instruction*> by_name;
  for (const Instruction* argument : parameters) by_name.emplace(ArgumentName(*argument), argument);
  for (const StatedConstraint& stated : arguments) {
    for (const std::string& pattern : stated.values) {
      bool any = false;
      // Names are looked up: there may be thousands.
      std::vector<const Instruction*> named(parameters.begin(), parameters.end());
      if (const auto found = by_name.find(pattern); found != by_name.end()) {
        named = {found->second};
      }
      for (const Instruction* argument : named) {
        if (!argument->shape().IsArray()) continue;
        if (!NameFits(pattern, argument->op_name()) && !NameFits(pattern, argument->name()))
          continue;
        any = true;
        ASSIGN_OR_RETURN(const Sharding sharding, ShardingOf("--shard", stated, *argument, mesh));
        RETURN_IF_ERROR(CheckDivides(*argument, sharding, mesh, "argument", "--shard"));
        const Sharding* before = SaidOf(argument, module);
        const auto follows = [&](const Instruction* result) {
          const Sharding* said = SaidOf(result, module);
          return before != nullptr && said != nullptr && SamePlacement(*said, *before) &&
                 result->shape() == argument->shape();
        };
        const auto result = std::ranges::find_if(results, follows);
        if (result != results.end()) {
          Say(*result, sharding, "stated for " + ArgumentName(*argument), /*is_result=*/true,
              module);
          results.erase(result);
        }
        Say(argument, sharding, "stated for " + ArgumentName(*argument), /*is_result=*/false,
            module);
      }
      if (any) continue;
      return NoArgument("--shard", stated.text, pattern, module);
    }
  }
  return absl::OkStatus();
}

}  // namespace tpusim::sharding
