#include "workloads/sharding/normalised/regions.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "configs/status_macros.h"
#include "fmt/format.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/sharding/text/markers.h"

namespace tpusim::sharding {

using hlo::Instruction;
using hlo::Opcode;

namespace {

// The value itself and which element of a tuple it is (-1: no tuple).
std::pair<Instruction*, int64_t> Element(Instruction* value) {
  if (value->opcode() != Opcode::kGetTupleElement) return {value, -1};
  return {value->operand(0), value->attrs().tuple_index()};
}

bool SaysManual(const hlo::pb::OpSharding& sharding) {
  if (sharding.type() == hlo::pb::OpSharding::MANUAL) return true;
  if (sharding.named_sharding().manual_axes_size() > 0) return true;
  const auto& subgroups = sharding.last_tile_dims();
  return std::find(subgroups.begin(), subgroups.end(), hlo::pb::OpSharding::MANUAL) !=
         subgroups.end();
}

// A result's way out: [get-tuple-element ->] [Sharding {manual} ->] SPMDShardToFullShape.
Instruction* OldExit(const Instruction& value) {
  for (Instruction* user : value.users()) {
    if (IsTarget(*user, kShardToFull)) return user;
    if (!IsTarget(*user, kConstraint) || !SaysManual(user->attrs().sharding())) continue;
    for (Instruction* next : user->users()) {
      if (IsTarget(*next, kShardToFull)) return next;
    }
  }
  return nullptr;
}

struct Boundary {
  std::vector<Instruction*> operands;  // global
  std::vector<Instruction*> local_operands;
  // Per result what it is made of and the instruction that it replaces.
  std::vector<Instruction*> local_results, exits;
  bool one_exit = false;  // a single exit of tuple shape
  ManualRegion region;
};

absl::StatusOr<Boundary> ShardyBoundary(Instruction* call, const MeshTable& table) {
  Boundary b;
  // Operands: elements of what GlobalToLocalShape gives.
  Instruction* entry = nullptr;
  std::vector<int64_t> positions;
  for (Instruction* operand : call->operands()) {
    const auto [marker, index] = Element(operand);
    if (!IsTarget(*marker, kGlobalToLocal) || (entry != nullptr && marker != entry)) {
      return UserError(fmt::format("operand {} of {} does not come from the region's own {}",
                                   operand->name(), call->Describe(), kGlobalToLocal));
    }
    entry = marker;
    positions.push_back(std::max<int64_t>(index, 0));
    if (positions.back() >= static_cast<int64_t>(marker->operands().size())) {
      return UserError(fmt::format("{} has no operand {}", marker->Describe(), positions.back()));
    }
    b.operands.push_back(marker->operand(positions.back()));
    b.local_operands.push_back(operand);
  }
  // Results: all go to one LocalToGlobalShape.
  Instruction* exit = nullptr;
  std::vector<Instruction*> users = call->users();
  for (size_t i = 0; i < users.size(); ++i) {
    Instruction* user = users[i];
    if (user->opcode() == Opcode::kGetTupleElement) {
      users.insert(users.end(), user->users().begin(), user->users().end());
      continue;
    }
    if (!IsTarget(*user, kLocalToGlobal) || (exit != nullptr && user != exit)) {
      return UserError(fmt::format("{} uses the result of {} outside its {}", user->name(),
                                   call->Describe(), kLocalToGlobal));
    }
    exit = user;
  }
  if (exit == nullptr) {
    return NoRule("a shard_map without results has no rule: " + call->Describe());
  }
  ASSIGN_OR_RETURN(b.region.results, ShardingList(*exit, kOutShardings, table));
  const auto axes_text = hlo::FrontendAttribute(*exit, kManualAxes);
  if (!axes_text) return UserError(exit->Describe() + " has no " + kManualAxes);
  auto manual = ParseManualAxes(*axes_text, table.mesh, table.sdy);
  if (!manual.ok()) return In(*exit, manual.status());
  b.region.manual_axes = *std::move(manual);
  if (entry != nullptr) {
    ASSIGN_OR_RETURN(const std::vector<Sharding> all, ShardingList(*entry, kInShardings, table));
    for (int64_t position : positions) {
      if (position >= static_cast<int64_t>(all.size())) {
        return UserError(fmt::format("{}: {} in_shardings", entry->Describe(), all.size()));
      }
      b.region.operands.push_back(all[position]);
    }
  }
  const size_t leaves = hlo::Leaves(exit->shape()).size();
  if (b.region.results.size() != leaves || exit->operands().size() != leaves) {
    return UserError(fmt::format("{}: {} out_shardings for {}", exit->Describe(),
                                 b.region.results.size(), exit->shape().ToString()));
  }
  b.local_results = exit->operands();
  b.exits = {exit};
  b.one_exit = true;
  return b;
}

absl::StatusOr<DecodedSharding> OneSaid(const Instruction& marker, const MeshTable& table) {
  ASSIGN_OR_RETURN(const auto said, SaidBy(marker, marker.shape(), table));
  if (!said || said->size() != 1) return UserError(marker.Describe() + " has no sharding");
  return (*said)[0];
}

absl::StatusOr<Boundary> OldBoundary(Instruction* call, const Axes& outer, const MeshTable& table) {
  Boundary b;
  std::optional<Axes> manual;
  const auto inside = [&](const Instruction& marker) -> absl::Status {
    ASSIGN_OR_RETURN(const DecodedSharding said, OneSaid(marker, table));
    Axes axes;
    for (const AxisRef& axis : said.manual) {
      if (!Overlap(outer, axis)) axes.push_back(axis);
    }
    if (manual && *manual != axes) {
      return UserError(fmt::format("{}: manual axes {}, elsewhere in the region {}",
                                   marker.Describe(), ToString(axes, table.mesh),
                                   ToString(*manual, table.mesh)));
    }
    manual = axes;
    return absl::OkStatus();
  };
  for (Instruction* operand : call->operands()) {
    if (!IsTarget(*operand, kFullToShard) || operand->operands().size() != 1) {
      return UserError(fmt::format("operand {} of {} does not come from {}", operand->name(),
                                   call->Describe(), kFullToShard));
    }
    RETURN_IF_ERROR(inside(*operand));
    Instruction* constraint = operand->operand(0);
    if (!IsTarget(*constraint, kConstraint) || constraint->operands().size() != 1) {
      return UserError(fmt::format("{} is not made of a sharding constraint", operand->Describe()));
    }
    ASSIGN_OR_RETURN(DecodedSharding said, OneSaid(*constraint, table));
    b.region.operands.push_back(std::move(said.sharding));
    b.operands.push_back(constraint->operand(0));
    b.local_operands.push_back(operand);
  }
  std::vector<Instruction*> values = {call};
  for (Instruction* user : call->users()) {
    if (user->opcode() == Opcode::kGetTupleElement) values.push_back(user);
  }
  for (Instruction* value : values) {
    if (value == call && call->shape().IsTuple()) continue;
    Instruction* exit = OldExit(*value);
    if (exit == nullptr) {
      if (value->users().empty()) continue;
      return UserError(fmt::format("{}, a result of {}, does not leave by {}", value->name(),
                                   call->Describe(), kShardToFull));
    }
    if (exit->operand(0) != value) RETURN_IF_ERROR(inside(*exit->operand(0)));
    ASSIGN_OR_RETURN(DecodedSharding said, OneSaid(*exit, table));
    b.region.results.push_back(std::move(said.sharding));
    b.local_results.push_back(value);
    b.exits.push_back(exit);
  }
  if (b.exits.empty()) {
    return NoRule("a shard_map without results has no rule: " + call->Describe());
  }
  b.region.manual_axes = manual.value_or(Axes());
  return b;
}

// Every shard as large as the body says, counting manual axes only; those come
// before the others in their dimension.
absl::Status CheckShards(const Instruction& call, const hlo::Shape& global,
                         const Sharding& sharding, const hlo::Shape& local, const Axes& manual,
                         const Mesh& mesh) {
  bool fits =
      static_cast<int64_t>(sharding.dims.size()) == global.rank() && global.rank() == local.rank();
  for (int64_t d = 0; fits && d < global.rank(); ++d) {
    int64_t shards = 1;
    bool leading = true;
    for (const AxisRef& axis : sharding.dims[d].axes) {
      const bool is_manual = Overlap(manual, axis);
      fits = fits && (!is_manual || leading);
      leading = leading && is_manual;
      if (is_manual) shards *= axis.size;
    }
    fits = fits && local.dims[d] * shards == global.dims[d];
  }
  if (fits) return absl::OkStatus();
  return UserError(fmt::format("{}: {} sharded {} is not made of shards {} over {}",
                               call.Describe(), global.ToString(), ToString(sharding, mesh),
                               local.ToString(), ToString(manual, mesh)));
}

}  // namespace

bool IsRegionCall(const Instruction& call) {
  if (call.opcode() != Opcode::kCall || call.called().size() != 1) return false;
  // The kind of computation that XLA's round trip through HLO keeps out of line.
  if (call.called()[0]->name().find("xla.sdy.manual_computation_body") != std::string::npos) {
    return true;
  }
  for (const Instruction* operand : call.operands()) {
    if (IsTarget(*operand, kFullToShard)) return true;
  }
  if (!call.shape().IsTuple()) return OldExit(call) != nullptr;
  for (const Instruction* user : call.users()) {
    if (user->opcode() == Opcode::kGetTupleElement && OldExit(*user) != nullptr) return true;
  }
  return false;
}

absl::StatusOr<Instruction*> RewriteRegion(Instruction* call, const Axes& outer,
                                           NormalisedModule* out) {
  const Mesh& mesh = out->mesh.mesh;
  const bool shardy =
      call->called()[0]->name().find("xla.sdy.manual_computation_body") != std::string::npos;
  ASSIGN_OR_RETURN(Boundary b,
                   shardy ? ShardyBoundary(call, out->mesh) : OldBoundary(call, outer, out->mesh));
  ManualRegion& region = b.region;
  if (Overlap(outer, region.manual_axes)) {
    return UserError(fmt::format("{}: {} are manual around it already", call->Describe(),
                                 ToString(region.manual_axes, mesh)));
  }
  region.partitioned = Product(outer) * Product(region.manual_axes) != mesh.size();
  for (size_t i = 0; i < b.operands.size(); ++i) {
    RETURN_IF_ERROR(CheckShards(*call, b.operands[i]->shape(), region.operands[i],
                                b.local_operands[i]->shape(), region.manual_axes, mesh));
  }
  std::vector<const hlo::Shape*> results;
  if (b.one_exit) {
    results = hlo::Leaves(b.exits[0]->shape());
  } else {
    for (const Instruction* exit : b.exits) results.push_back(&exit->shape());
  }
  for (size_t i = 0; i < results.size(); ++i) {
    RETURN_IF_ERROR(CheckShards(*call, *results[i], region.results[i], b.local_results[i]->shape(),
                                region.manual_axes, mesh));
    const int64_t index = Element(b.local_results[i]).second;
    if (index >= 0) region.result_index.push_back(index);
  }
  if (!region.result_index.empty() && region.result_index.size() != results.size()) {
    return UserError(call->Describe() + ": some results are elements of a tuple, others are not");
  }

  hlo::Shape shape;
  if (b.one_exit) {
    shape = b.exits[0]->shape();
  } else if (b.exits.size() == 1) {
    shape = *results[0];
  } else {
    std::vector<hlo::Shape> shapes;
    for (const hlo::Shape* result : results) shapes.push_back(*result);
    shape = hlo::MakeTupleShape(std::move(shapes));
  }
  Instruction* global =
      call->parent()->Add(Opcode::kCall, std::move(shape), b.operands, call->name(), call);
  global->set_called(call->called());
  Annotation& annotation = out->annotations[global];
  annotation.leaves.assign(region.results.begin(), region.results.end());
  annotation.reason = "out_specs of " + At(*call);
  out->manual_regions[global] = std::move(region);
  if (b.exits.size() == 1) {
    Retire(b.exits[0], global);
  } else {
    for (size_t i = 0; i < b.exits.size(); ++i) {
      Instruction* element = call->parent()->Add(Opcode::kGetTupleElement, *results[i], {global},
                                                 b.exits[i]->name(), b.exits[i]);
      element->mutable_attrs().set_tuple_index(static_cast<int64_t>(i));
      Retire(b.exits[i], element);
    }
  }
  // What is left of the boundary is dead now; what the body does, the new call does.
  call->set_called({});
  for (Instruction* local : b.local_operands) {
    Instruction* marker = Element(local).first;
    Retire(marker, nullptr);
    if (!shardy) Retire(marker->operand(0), nullptr);
  }
  for (Instruction* local : b.local_results) {
    for (Instruction* user : local->users()) {
      if (user->opcode() == Opcode::kCustomCall) Retire(user, nullptr);
    }
  }
  return global;
}

}  // namespace tpusim::sharding
