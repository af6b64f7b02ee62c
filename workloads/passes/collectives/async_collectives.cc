#include "workloads/passes/collectives/async_collectives.h"

#include <vector>

#include "workloads/hlo/analysis/control.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"

namespace tpusim::passes {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

hlo::Shape Flag() { return hlo::MakeShape(hlo::PrimitiveType::kU32, {}); }

Bytes OperandBytes(const Instruction& i) {
  Bytes bytes(0);
  for (const Instruction* operand : i.operands()) bytes += operand->shape().ByteSize();
  return bytes;
}

bool OffLoads(const Instruction& i, const configs::SparseCoreParams& sparse_core) {
  Bytes least(0);
  switch (i.opcode()) {
    case Opcode::kAllGather:
      least = sparse_core.offload_all_gather;
      break;
    case Opcode::kAllReduce:
      least = sparse_core.offload_all_reduce;
      break;
    case Opcode::kReduceScatter:
      least = sparse_core.offload_reduce_scatter;
      break;
    default:
      break;
  }
  return least > Bytes(0) && OperandBytes(i) >= least;
}

// `start` and `done` take the place of what was synchronous.
void Replace(Instruction* i, Instruction* start, Instruction* done) {
  i->MoveControlTo(start, done);
  *done->mutable_attrs().mutable_metadata() = i->attrs().metadata();
  i->ReplaceAllUsesWith(done);
  done->parent()->Remove(i);
}

// The start owns the source, the destination and, of permutes, two flags.
void Split(Instruction* i, Opcode start_opcode, Opcode done_opcode, hlo::Shape shape) {
  Computation* computation = i->parent();
  Instruction* start =
      computation->Add(start_opcode, std::move(shape), {i->operand(0)}, i->name() + "-start");
  start->mutable_attrs() = i->attrs();  // who sends to whom, over which axes
  Replace(i, start, computation->Add(done_opcode, i->shape(), {start}, i->name() + "-done"));
}

void OffLoad(Instruction* i) {
  Computation* computation = i->parent();
  Computation* inner = computation->parent()->AddComputation("async_" + i->name());
  std::vector<Instruction*> parameters;
  std::vector<hlo::Shape> shapes;
  for (const Instruction* operand : i->operands()) {
    const auto number = static_cast<int64_t>(parameters.size());
    parameters.push_back(
        inner->AddParameter(number, operand->shape(), "param_" + std::to_string(number)));
    shapes.push_back(operand->shape());
  }
  Instruction* wrapped = inner->Add(i->opcode(), i->shape(), parameters, i->name(), i);
  wrapped->set_called(i->called());
  inner->set_root(wrapped);
  Instruction* start = computation->Add(
      Opcode::kAsyncStart, hlo::MakeTupleShape({hlo::MakeTupleShape(shapes), i->shape(), Flag()}),
      i->operands(), i->name() + "-start");
  start->set_called({inner});
  start->mutable_attrs().set_async_execution_thread(std::string(hlo::kSparseCoreThread));
  *start->mutable_attrs().mutable_metadata() = i->attrs().metadata();
  Replace(i, start, computation->Add(Opcode::kAsyncDone, i->shape(), {start}, i->name() + "-done"));
}

}  // namespace

Instruction* MakeSynchronous(Instruction& all_gather_done) {
  Instruction& start = *all_gather_done.operand(0);
  std::string name = all_gather_done.name();
  const size_t suffix = name.rfind("-done");
  if (suffix != std::string::npos) name.erase(suffix, 5);
  all_gather_done.parent()->parent()->ReleaseName(name);
  Instruction* whole = all_gather_done.parent()->Add(Opcode::kAllGather, all_gather_done.shape(),
                                                     {start.operand(0)}, name);
  whole->mutable_attrs() = start.attrs();
  start.MoveControlTo(whole, whole);
  all_gather_done.MoveControlTo(whole, whole);
  all_gather_done.ReplaceAllUsesWith(whole);
  return whole;
}

bool CarriesGathers(const Instruction& i) {
  return i.opcode() == Opcode::kDot || i.opcode() == Opcode::kConvolution ||
         (i.opcode() == Opcode::kFusion && i.attrs().fusion_kind() == "kOutput");
}

absl::StatusOr<bool> MakeCollectivesAsync(hlo::Module& module, const PassContext& context,
                                          const AsyncOptions& options) {
  const bool gathers = options.all_gathers && context.target.chip().compiler.gathers_in_flight > 0;
  bool changed = false;
  for (Computation* computation : ControlComputations(module)) {
    for (Instruction* i : computation->PostOrder()) {
      const bool one = i->operands().size() == 1;
      if (options.permutes && i->opcode() == Opcode::kCollectivePermute && one) {
        Split(i, Opcode::kCollectivePermuteStart, Opcode::kCollectivePermuteDone,
              hlo::MakeTupleShape({i->operand(0)->shape(), i->shape(), Flag(), Flag()}));
      } else if (options.offload && OffLoads(*i, context.target.chip().sparse_core)) {
        OffLoad(i);
      } else if (gathers && i->opcode() == Opcode::kAllGather && one) {
        Split(i, Opcode::kAllGatherStart, Opcode::kAllGatherDone,
              hlo::MakeTupleShape({i->operand(0)->shape(), i->shape()}));
      } else {
        continue;
      }
      changed = true;
    }
  }
  return changed;
}

}  // namespace tpusim::passes
