#include "workloads/sharding/text/markers.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include "configs/status_macros.h"
#include "fmt/format.h"
#include "workloads/hlo/ir/attributes.h"

namespace tpusim::sharding {

using hlo::Instruction;

namespace {

// The older partitioner's open dimensions: backend_config "unspecified_dims=[0,2]".
std::vector<size_t> UnspecifiedDims(const std::string& config) {
  std::vector<size_t> dims;
  constexpr std::string_view kKey = "unspecified_dims=[";
  size_t at = config.find(kKey);
  if (at == std::string::npos) return dims;
  at += kKey.size();
  const auto digit = [&] {
    return at < config.size() && std::isdigit(static_cast<unsigned char>(config[at])) != 0;
  };
  while (digit()) {
    size_t dim = 0;
    while (digit()) dim = std::min<size_t>(dim * 10 + (config[at++] - '0'), 1 << 20);
    dims.push_back(dim);
    ++at;
  }
  return dims;
}

}  // namespace

bool IsTarget(const Instruction& instruction, std::string_view target) {
  return instruction.opcode() == hlo::Opcode::kCustomCall &&
         instruction.attrs().custom_call_target() == target;
}

absl::Status In(const Instruction& instruction, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(),
                      fmt::format("{}: {}", instruction.Describe(), Message(status)));
}

std::string At(const Instruction& instruction) {
  const std::string source = instruction.SourceLocation();
  return source.empty() ? instruction.name() : source;
}

absl::StatusOr<std::vector<Sharding>> ShardingList(const Instruction& marker, const char* attribute,
                                                   const MeshTable& table) {
  const auto text = hlo::FrontendAttribute(marker, attribute);
  if (!text) return UserError(fmt::format("{} has no {}", marker.Describe(), attribute));
  auto shardings = ParseShardings(*text, table.mesh, table.sdy);
  if (!shardings.ok()) return In(marker, shardings.status());
  return shardings;
}

absl::StatusOr<std::optional<std::vector<DecodedSharding>>> SaidBy(const Instruction& instruction,
                                                                   const hlo::Shape& shape,
                                                                   const MeshTable& table) {
  const std::vector<const hlo::Shape*> leaves = hlo::Leaves(shape);
  std::vector<DecodedSharding> said;
  if (hlo::FrontendAttribute(instruction, kShardingAttribute)) {
    ASSIGN_OR_RETURN(const std::vector<Sharding> shardings,
                     ShardingList(instruction, kShardingAttribute, table));
    if (shardings.size() != leaves.size()) {
      return UserError(fmt::format("{}: {} shardings for {}", instruction.Describe(),
                                   shardings.size(), shape.ToString()));
    }
    for (const Sharding& sharding : shardings) said.push_back({true, sharding, {}});
  } else if (instruction.attrs().has_sharding()) {
    auto decoded = DecodeOpSharding(instruction.attrs().sharding(), shape, table.mesh);
    if (!decoded.ok()) return In(instruction, decoded.status());
    said = *std::move(decoded);
    for (size_t dim : UnspecifiedDims(instruction.attrs().backend_config())) {
      for (DecodedSharding& leaf : said) {
        if (dim < leaf.sharding.dims.size()) leaf.sharding.dims[dim].open = true;
      }
    }
  } else {
    return std::optional<std::vector<DecodedSharding>>();
  }
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (static_cast<int64_t>(said[i].sharding.dims.size()) != leaves[i]->rank()) {
      return UserError(fmt::format("{}: sharding {} on a value of shape {}", instruction.Describe(),
                                   ToString(said[i].sharding, table.mesh), leaves[i]->ToString()));
    }
  }
  return std::optional(std::move(said));
}

void Retire(Instruction* marker, Instruction* with) {
  if (with != nullptr) marker->ReplaceAllUsesWith(with);
  marker->mutable_attrs().set_custom_call_has_side_effect(false);
}

}  // namespace tpusim::sharding
