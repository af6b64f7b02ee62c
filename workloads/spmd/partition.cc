#include "workloads/spmd/partition.h"

#include <algorithm>

#include "configs/status_macros.h"
#include "fmt/format.h"
#include "workloads/hlo/ir/annotations.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/transforms/forward_tuples.h"
#include "workloads/hlo/transforms/merge_reduces.h"
#include "workloads/sharding/factors/projection.h"
#include "workloads/sharding/propagation/unreduced.h"
#include "workloads/spmd/emit/emit.h"
#include "workloads/spmd/factor_choice.h"
#include "workloads/spmd/limits.h"
#include "workloads/spmd/ops/local_op.h"
#include "workloads/spmd/partitioner.h"
#include "workloads/spmd/wanted_axes.h"

namespace tpusim::spmd {
namespace {

constexpr Reason kGatheredInFull{
    "partition.gathered-in-full", Action::kWarned,
    "{operation}: {shape} is gathered in full on every device to get from {from} to {to}; a "
    "sharding constraint before it may avoid that{more}"};
constexpr Reason kNeedsWhole{
    "partition.needs-whole", Action::kWarned,
    "{operation}: {opcode} needs a dimension whole that {operand} shards over {axes}; it is "
    "gathered{more}"};

}  // namespace

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;
using sharding::Sharding;

Partitioner::Partitioner(const sharding::ShardedModule& sharded, const ReshardLatency& latency)
    : in_(sharded), sites_(sharded, callers_), plans_(in_.mesh, latency) {}

const std::vector<Sharding>& Partitioner::Leaves(const Instruction& global) const {
  return in_.shardings.at(&global).leaves;
}

const Sharding& Partitioner::Only(const Instruction& global) const {
  const std::vector<Sharding>& leaves = Leaves(global);
  TPUSIM_CHECK(leaves.size() == 1, "a tuple where an array is expected: " + global.Describe());
  return leaves[0];
}

hlo::Shape Partitioner::LocalShape(const hlo::Shape& global, const std::vector<Sharding>& leaves) {
  hlo::Shape local = global;
  size_t next = 0;
  std::vector<hlo::Shape*> work = {&local};
  while (!work.empty()) {
    hlo::Shape* shape = work.back();
    work.pop_back();
    if (!shape->IsTuple()) {
      *shape = ShardShape(*shape, leaves[next++]);
      continue;
    }
    for (auto it = shape->tuple.rbegin(); it != shape->tuple.rend(); ++it) work.push_back(&*it);
  }
  return local;
}

std::vector<Sharding> Partitioner::EvenLeaves(const Instruction& global) const {
  std::vector<Sharding> leaves = Leaves(global);
  const std::vector<const hlo::Shape*> shapes = hlo::Leaves(global.shape());
  for (size_t i = 0; i < leaves.size(); ++i) {
    for (size_t d = 0; d < leaves[i].dims.size(); ++d) {
      sharding::Axes& axes = leaves[i].dims[d].axes;
      while (shapes[i]->dims[d] % Product(axes) != 0) axes.pop_back();
    }
  }
  return leaves;
}

void Partitioner::Warn(Record warning) {
  const std::string source = builder_->source()->SourceLocation();
  const std::string text = ToString(warning);
  Warned& warned =
      warned_[source.empty() ? text : fmt::format("{}|{}", warning.reason->id, source)];
  if (!warned.texts.insert(text).second) return;
  if (warned.texts.size() > 1) return;
  warned.index = result_.warnings.size();
  result_.warnings.push_back(std::move(warning));
}

void Partitioner::CountWarnings() {
  for (const auto& [key, warned] : warned_) {
    const size_t more = warned.texts.size() - 1;
    if (more == 0) continue;
    std::vector<RecordValue>& values = result_.warnings[warned.index].values;
    std::ranges::find(values, "more", &RecordValue::name)->value =
        fmt::format("; {} more like it at this line", more);
  }
}

// A scalar everywhere is made again instead of moved.
bool IsFilled(const Instruction* value) {
  return value->opcode() == Opcode::kBroadcast && value->operand(0)->shape().IsScalar();
}

const std::vector<Partitioner::ShardedValue>* Partitioner::FormsOf(const Instruction* value) const {
  const size_t id = value->id();
  return id < forms_of_.size() && forms_of_[id] >= 0 ? &forms_[forms_of_[id]] : nullptr;
}

void Partitioner::IsForm(const Instruction* value, int32_t forms) {
  const size_t id = value->id();
  if (id >= forms_of_.size()) forms_of_.resize(std::max(id + 1, 2 * forms_of_.size()), -1);
  forms_of_[id] = forms;
}

const Instruction* Partitioner::FirstForm(const Instruction* value) const {
  const std::vector<ShardedValue>* forms = FormsOf(value);
  return forms == nullptr ? value : forms->front().value;
}

bool Partitioner::IsMade(const Instruction* value) const {
  return IsFilled(value) || iotas_.contains(FirstForm(value));
}

void Partitioner::NoteIota(const Instruction& global, const Instruction* local) {
  if (global.opcode() == Opcode::kIota) iotas_[local] = hlo::OnlyDimension(global);
  if (global.opcode() != Opcode::kBroadcast) return;
  const auto iota = iotas_.find(FirstForm(Local(global.operand(0))));
  if (iota != iotas_.end()) iotas_[local] = hlo::Dimensions(global)[iota->second];
}

std::vector<Sharding> Partitioner::OtherForms(const Instruction* value) const {
  std::vector<Sharding> others;
  const std::vector<ShardedValue>* forms = FormsOf(value);
  if (forms == nullptr) return others;
  for (const ShardedValue& form : *forms) {
    if (form.value != value) others.push_back(form.sharding);
  }
  return others;
}

absl::StatusOr<Instruction*> Partitioner::Reshard(Instruction* value, const hlo::Shape& global,
                                                  const Sharding& from, const Sharding& to,
                                                  const RegionMaker& region, const Moved* moved) {
  if (SamePlacement(from, to)) return value;
  if (FormsOf(value) == nullptr) {
    IsForm(value, static_cast<int32_t>(forms_.size()));
    forms_.push_back({{from, value, region}});
  }
  const int32_t index = forms_of_[value->id()];
  std::vector<ShardedValue>& forms = forms_[index];
  for (const ShardedValue& form : forms) {
    if (SamePlacement(form.sharding, to)) return form.value;
  }
  const auto keep = [&](Instruction* made) {
    forms.push_back({to, made, forms[0].region});
    IsForm(made, index);
    return made;
  };
  if (IsFilled(value) &&
      (hlo::IsZero(*value) || (from.unreduced.empty() && to.unreduced.empty()))) {
    return keep(builder_->Add(Opcode::kBroadcast, ShardShape(global, to), {value->operand(0)}));
  }
  if (const auto iota = iotas_.find(forms[0].value); iota != iotas_.end()) {
    const int64_t dim = iota->second;
    return keep(IotaShard(*builder_, ShardShape(global, to), dim, to.dims[dim].axes));
  }
  if (const Sharding parts = WithBegunSums(from, to); parts != from) {
    const sharding::Axes over = sharding::AfterPrefix(from.unreduced, parts.unreduced);
    if (to.reduction != sharding::Reduction::kSum) {
      Instruction* part = builder_->Add(Opcode::kCopy, value->shape(), {value});
      return Reshard(part, global, parts, to, region, moved);
    }
    Instruction* part = Select(*builder_, HasShard(*builder_, over, 0), value,
                               builder_->Zero(value->shape().element_type));
    return Reshard(part, global, parts, to, region, moved);
  }
  const ReshardPlan* plan = nullptr;
  const ShardedValue* source = nullptr;
  absl::Status failure = absl::OkStatus();
  for (const ShardedValue& form : forms) {
    auto found = plans_.Find(global, form.sharding, to);
    if (!found.ok()) {
      failure = found.status();
    } else if (plan == nullptr || (*found)->bytes < plan->bytes) {
      plan = *found;
      source = &form;
    }
  }
  if (plan == nullptr) {
    return absl::Status(failure.code(),
                        fmt::format("{}: {}", builder_->source()->Describe(), Message(failure)));
  }
  if (plan->full_gather) {
    Warn({"partition",
          &kGatheredInFull,
          builder_->source()->name(),
          {{"operation", builder_->source()->Describe()},
           {"shape", global.ToString()},
           {"from", ToString(source->sharding, in_.mesh)},
           {"to", ToString(to, in_.mesh)},
           {"more", ""}}});
  }
  const RegionMaker by_parts = [&] {
    return builder_->BinaryRegion(sharding::OpcodeOf(source->sharding.reduction),
                                  global.element_type);
  };
  const RegionMaker combine = region ? region : source->region ? source->region : by_parts;
  if (moved != nullptr) {
    builder_->set_reshard_site(sites_.Note(*moved, source->sharding, to, *plan));
  }
  Instruction* made = CarryOut(*builder_, source->value, global, *plan, combine);
  builder_->set_reshard_site(-1);
  return keep(made);
}

absl::StatusOr<Instruction*> Partitioner::ReshardTuple(Instruction* value, const hlo::Shape& global,
                                                       const std::vector<Sharding>& from,
                                                       const std::vector<Sharding>& to) {
  bool same = true;
  for (size_t i = 0; i < from.size(); ++i) same = same && SamePlacement(from[i], to[i]);
  if (same) return value;
  if (!global.IsTuple()) return Reshard(value, global, from[0], to[0]);
  if (from.size() != global.tuple.size()) {
    return NoRule(fmt::format("{}: moving the elements of a tuple within a tuple has no rule",
                              builder_->source()->Describe()));
  }
  std::vector<Instruction*> elements;
  std::vector<hlo::Shape> shapes;
  for (size_t i = 0; i < from.size(); ++i) {
    ASSIGN_OR_RETURN(Instruction * element,
                     Reshard(builder_->Element(value, static_cast<int64_t>(i)), global.tuple[i],
                             from[i], to[i]));
    elements.push_back(element);
    shapes.push_back(element->shape());
  }
  return builder_->Add(Opcode::kTuple, hlo::MakeTupleShape(std::move(shapes)), elements);
}

absl::StatusOr<Instruction*> Partitioner::PartitionOp(const Instruction& global) {
  std::vector<Instruction*> operands;
  if (in_.mesh.size() == 1) {
    for (const Instruction* operand : global.operands()) operands.push_back(Local(operand));
    return SameOp({*builder_, global, {}, {}, operands, global.shape()});
  }
  ASSIGN_OR_RETURN(const std::shared_ptr<const sharding::ShardingRule> shared, rules_.Find(global));
  const sharding::ShardingRule& rule = *shared;
  const std::vector<const hlo::Shape*> leaves = hlo::Leaves(global.shape());
  std::vector<TensorPlacement> operand_places, result_places;
  for (const Instruction* operand : global.operands()) {
    const Instruction* local = Local(operand);
    operand_places.push_back(
        {&operand->shape(), &Only(*operand), OtherForms(local), IsMade(local)});
  }
  for (size_t i = 0; i < leaves.size(); ++i) {
    result_places.push_back({leaves[i], &Leaves(global)[i], {}, false});
  }
  if (!global.shape().IsTuple() && !global.IsRoot() && !global.users().empty()) {
    result_places[0].used_as_is = false;
    for (const Instruction* user : global.users()) {
      const bool constraint = user->opcode() == Opcode::kCopy && in_.constraints.contains(user);
      if (!constraint) {
        result_places[0].used_as_is = true;
      } else if (std::ssize(result_places[0].wanted) < limits::kWantedShardings.most()) {
        result_places[0].wanted.push_back(Only(*user));
      } else {
        limits::kWantedShardings.Reached();
      }
    }
  }
  const OpFamily& family = FamilyOf(global);
  const std::optional<Combiner> combiner = CombinerOf(global);
  SplitRules splits;
  splits.reductions = combiner.has_value();
  splits.keep_sums = global.opcode() == Opcode::kDot || global.opcode() == Opcode::kConvolution ||
                     global.opcode() == Opcode::kRaggedDot || global.opcode() == Opcode::kReduce;
  // So does the TPU compiler: the gradient of a whole embedding table is summed over the devices
  // of a batch, the updates are exchanged where the table is split over them.
  splits.keep_whole_sums = global.opcode() == Opcode::kScatter;
  splits.as_result = global.opcode() == Opcode::kDot;
  // XLA splits lookups as their indices are, and scattered updates as they come.
  if (global.opcode() == Opcode::kGather) splits.keep_operand = 1;
  if (global.opcode() == Opcode::kScatter) splits.keep_operand = global.operands().size() - 1;
  splits.lend = global.opcode() != Opcode::kDynamicSlice &&
                global.opcode() != Opcode::kDynamicUpdateSlice;
  if (family.own != nullptr) {
    splits.own = [&](const std::vector<sharding::Axes>& axes) {
      return family.own(global, rule, axes);
    };
  }
  splits.partial = sharding::PartialOperands(in_, global);
  if (combiner) splits.reduction = sharding::ReductionOf(combiner->opcode);
  if (!splits.partial.empty()) {
    splits.unreduced = Only(global).unreduced;
    splits.reduction = Only(global).reduction;
  }
  FactorChoice choice;
  if (global.opcode() == Opcode::kConstant) {
    choice.results.push_back(sharding::Replicated(global.shape().rank()));  // cut afterwards
  } else {
    auto chosen = ChooseFactors(rule, operand_places, result_places, plans_, splits);
    if (!chosen.ok()) {
      return absl::Status(chosen.status().code(),
                          fmt::format("{}: {}", global.Describe(), Message(chosen.status())));
    }
    choice = *std::move(chosen);
  }
  for (size_t i = 0; i < global.operands().size(); ++i) {
    const Instruction* operand = global.operand(i);
    const sharding::Projection view =
        Project(*operand_places[i].sharding, rule.operands[i], rule.factors);
    for (size_t f = 0; f < rule.factors.size(); ++f) {
      if (view.axes[f].empty() || rule.factors[f].kind == sharding::FactorKind::kPassThrough ||
          !choice.axes[f].empty() ||
          (rule.factors[f].kind == sharding::FactorKind::kReduction && combiner)) {
        continue;
      }
      Warn({"partition",
            &kNeedsWhole,
            global.name(),
            {{"operation", global.Describe()},
             {"opcode", std::string(hlo::OpcodeName(global.opcode()))},
             {"operand", operand->name()},
             {"axes", ToString(view.axes[f], in_.mesh)},
             {"more", ""}}});
    }
    const Moved moved = {operand, &global, i, &rule};
    ASSIGN_OR_RETURN(Instruction * local,
                     Reshard(Local(operand), operand->shape(), *operand_places[i].sharding,
                             choice.operands[i], {}, &moved));
    operands.push_back(local);
  }
  const hlo::Shape shape = LocalShape(global.shape(), choice.results);
  ASSIGN_OR_RETURN(Instruction * local,
                   family.make({*builder_, global, rule, choice, operands, shape}));
  NoteIota(global, local);
  if (global.opcode() == Opcode::kDot) {
    hlo::annotations::kWantedAxes.Set(
        local, WantedAxes(global, Only(*global.operand(0)), Only(*global.operand(1)), Only(global),
                          in_.mesh));
  }
  if (global.shape().IsTuple()) {
    return ReshardTuple(local, global.shape(), choice.results, Leaves(global));
  }
  RegionMaker region;
  if (combiner) {
    region = [this, by = *combiner] { return builder_->BinaryRegion(by.opcode, by.type); };
  }
  const Moved moved = {&global, &global, 0, &rule};
  return Reshard(local, global.shape(), choice.results[0], Only(global), region, &moved);
}

absl::StatusOr<Instruction*> Partitioner::PartitionInstruction(const Instruction& global) {
  switch (global.opcode()) {
    case Opcode::kParameter: {
      if (global.parent() != in_.module->entry()) {
        return builder_->AddLikeSource(LocalShape(global.shape(), Leaves(global)), {});
      }
      const std::vector<Sharding> even = EvenLeaves(global);
      return ReshardTuple(builder_->AddLikeSource(LocalShape(global.shape(), even), {}),
                          global.shape(), even, Leaves(global));
    }
    case Opcode::kTuple: {
      std::vector<Instruction*> operands;
      for (const Instruction* operand : global.operands()) operands.push_back(Local(operand));
      return builder_->AddLikeSource(LocalShape(global.shape(), Leaves(global)), operands);
    }
    case Opcode::kGetTupleElement: {
      Instruction* tuple = Local(global.operand(0));
      const int64_t index = global.attrs().tuple_index();
      if (tuple->opcode() == Opcode::kTuple) return tuple->operand(index);
      return builder_->AddLikeSource(tuple->shape().tuple[index], {tuple});
    }
    case Opcode::kOptBarrier:
      return builder_->AddLikeSource(LocalShape(global.shape(), Leaves(global)),
                                     {Local(global.operand(0))});
    case Opcode::kWhile:
      return PartitionWhile(global);
    case Opcode::kConditional:
      return PartitionConditional(global);
    case Opcode::kCall:
      return PartitionManualRegion(global);
    case Opcode::kCopy:
      if (in_.constraints.contains(&global)) {
        return Reshard(Local(global.operand(0)), global.shape(), Only(*global.operand(0)),
                       Only(global));
      }
      return PartitionOp(global);
    default:
      return PartitionOp(global);
  }
}

absl::Status Partitioner::PartitionComputation(const Computation& global) {
  Computation* local = result_.module->AddComputation(global.name());
  computations_[&global] = local;
  Builder builder(local, in_.mesh);
  builder_ = &builder;
  for (const Instruction* instruction : global.PostOrder()) {
    builder.set_source(instruction);
    ASSIGN_OR_RETURN(Instruction * made, PartitionInstruction(*instruction));
    local_[instruction->id()] = made;
    for (const Instruction* before : instruction->control_predecessors()) {
      made->AddControlPredecessor(Local(before));
    }
  }
  Instruction* root = Local(global.root());
  // What a caller expects: a loop its carry and a whole predicate, a
  // conditional its result.
  builder.set_source(global.root());
  if (const auto it = callers_.find(&global); it != callers_.end()) {
    const auto [caller, index] = it->second;
    const hlo::Shape& shape = global.root()->shape();
    const bool condition = caller->opcode() == Opcode::kWhile && index == 1;
    ASSIGN_OR_RETURN(root, ReshardTuple(root, shape, Leaves(*global.root()),
                                        condition ? std::vector{sharding::Replicated(shape.rank())}
                                                  : Leaves(*caller)));
  }
  if (&global == in_.module->entry()) {
    ASSIGN_OR_RETURN(root, ReshardTuple(root, global.root()->shape(), Leaves(*global.root()),
                                        EvenLeaves(*global.root())));
  }
  local->set_root(root);
  builder_ = nullptr;
  return absl::OkStatus();
}

// Channels get their numbers, and every group the form that all readers know.
absl::Status Partitioner::FinishCollectives() {
  int64_t channel = 0;
  for (Computation* computation : result_.module->PostOrder()) {
    for (Instruction* collective : computation->PostOrder()) {
      if (!hlo::IsCollective(collective->opcode()) || hlo::IsAsyncDone(collective->opcode())) {
        continue;
      }
      hlo::pb::HloInstructionProto& attrs = collective->mutable_attrs();
      const bool permute = collective->opcode() == Opcode::kCollectivePermute ||
                           collective->opcode() == Opcode::kCollectivePermuteStart;
      if (!hlo::HasChannel(*collective)) continue;  // among replicas: there is one
      attrs.set_channel_id(++channel);
      if (hlo::annotations::kAxes.On(*collective)) continue;  // ours
      sharding::Axes axes;
      if (permute) {
        axes = AxesOfPairs(in_.mesh, hlo::SourceTargetPairs(*collective));
      } else {
        ASSIGN_OR_RETURN(auto groups, hlo::ReplicaGroups(*collective, in_.num_partitions));
        const bool flattens = collective->opcode() == Opcode::kAllReduce ||
                              collective->opcode() == Opcode::kAllGather ||
                              collective->opcode() == Opcode::kReduceScatter;
        if (flattens && !attrs.use_global_device_ids()) {
          // Ids of replicas, of which there is one: every partition takes part.
          groups.assign(1, {});
          for (int64_t i = 0; i < in_.num_partitions; ++i) groups[0].push_back(i);
          attrs.set_use_global_device_ids(true);
        }
        hlo::SetReplicaGroups(collective, groups);
        // Named if they are exactly the groups along some axes.
        std::vector<std::pair<int64_t, int64_t>> pairs;
        for (const auto& group : groups) {
          for (int64_t id : group) pairs.push_back({group[0], id});
        }
        axes = AxesOfPairs(in_.mesh, pairs);
        auto along = sharding::ReplicaGroups(in_.mesh, axes);
        for (auto* list : {&groups, &along}) {
          for (auto& group : *list) std::ranges::sort(group);
          std::ranges::sort(*list);
        }
        if (groups != along) axes.clear();
      }
      if (!axes.empty()) {
        hlo::annotations::kAxes.Set(collective, ToString(axes, in_.mesh));
      }
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<PartitionResult> Partitioner::Run() {
  result_.module = std::make_unique<hlo::Module>(in_.module->name());
  hlo::pb::HloModuleProto& fields = result_.module->mutable_fields();
  fields = in_.module->fields();
  fields.mutable_frontend_attributes()->mutable_map()->erase("xla.sdy.meshes");
  if (fields.frontend_attributes().map().empty()) fields.clear_frontend_attributes();
  fields.clear_spmd_output_sharding();
  fields.clear_spmd_parameters_shardings();
  local_.resize(in_.module->next_id());
  for (const Computation* computation : in_.module->computations()) {
    for (const Instruction* instruction : computation->instructions()) {
      if (instruction->opcode() != Opcode::kWhile &&
          instruction->opcode() != Opcode::kConditional) {
        continue;
      }
      for (size_t i = 0; i < instruction->called().size(); ++i) {
        callers_[instruction->called()[i]] = {instruction, i};
      }
    }
  }
  for (const Computation* computation : in_.module->PostOrder()) {
    if (!in_.shardings.contains(computation->root())) continue;  // reducers, manual bodies
    RETURN_IF_ERROR(PartitionComputation(*computation));
  }
  result_.module->set_entry(computations_.at(in_.module->entry()));
  result_.result_shardings = EvenLeaves(*in_.module->entry()->root());
  for (const Instruction* parameter : in_.module->entry()->parameters()) {
    for (Sharding& leaf : EvenLeaves(*parameter)) {
      result_.parameter_shardings.push_back(std::move(leaf));
    }
  }
  result_.module->RemoveUnreachable();
  hlo::ForwardAllTuples(*result_.module);
  result_.module->Cleanup();
  RETURN_IF_ERROR(FinishCollectives());
  result_.reshard_sites = sites_.Take();
  CountWarnings();
  return std::move(result_);
}

absl::StatusOr<PartitionResult> Partition(const sharding::ShardedModule& sharded,
                                          const ReshardLatency& latency) {
  return Partitioner(sharded, latency).Run();
}

}  // namespace tpusim::spmd
