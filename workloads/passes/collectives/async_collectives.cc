#include "workloads/passes/collectives/async_collectives.h"

#include <string>

#include "workloads/hlo/analysis/control.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/transforms/split_async.h"

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

// The start owns the source, the destination and, of permutes, two flags.
void Split(Instruction* i, Opcode start_opcode, Opcode done_opcode, hlo::Shape shape) {
  Computation* computation = i->parent();
  Instruction* start =
      computation->Add(start_opcode, std::move(shape), {i->operand(0)}, i->name() + "-start");
  start->mutable_attrs() = i->attrs();  // who sends to whom, over which axes
  hlo::ReplaceWithPair(i, start,
                       computation->Add(done_opcode, i->shape(), {start}, i->name() + "-done"));
}

void OffLoad(Instruction* i) {
  hlo::WrapInAsync(i)->mutable_attrs().set_async_execution_thread(
      std::string(hlo::kSparseCoreThread));
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
