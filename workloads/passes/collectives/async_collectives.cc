#include "workloads/passes/collectives/async_collectives.h"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "workloads/hlo/analysis/control.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/ir/walk.h"
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

// The fewest bytes that the SparseCores take of a kind; 0: they take none.
Bytes LeastOffLoaded(Opcode kind, const configs::SparseCoreParams& sparse_core) {
  switch (kind) {
    case Opcode::kAllGather:
      return sparse_core.offload_all_gather;
    case Opcode::kAllReduce:
      return sparse_core.offload_all_reduce;
    case Opcode::kReduceScatter:
      return sparse_core.offload_reduce_scatter;
    default:
      return Bytes(0);
  }
}

bool OffLoads(const Instruction& i, const configs::SparseCoreParams& sparse_core) {
  const Bytes least = LeastOffLoaded(i.opcode(), sparse_core);
  return least > Bytes(0) && OperandBytes(i) >= least;
}

enum class AsyncForm { kNone, kPermute, kOffLoaded, kGather };

AsyncForm AsyncFormOf(const Instruction& i, const target::Target& target,
                      const AsyncOptions& options) {
  const bool one = i.operands().size() == 1;
  if (options.permutes && i.opcode() == Opcode::kCollectivePermute && one) {
    return AsyncForm::kPermute;
  }
  if (options.offload && OffLoads(i, target.chip().sparse_core)) return AsyncForm::kOffLoaded;
  const bool gathers = options.all_gathers && target.chip().compiler.gathers_in_flight > 0;
  return gathers && i.opcode() == Opcode::kAllGather && one ? AsyncForm::kGather : AsyncForm::kNone;
}

// "all-reduce" to "all-reduces".
std::string Plural(std::string_view kind) { return std::string(kind) + "s"; }

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

bool CarriesGathers(const Instruction& i) {
  return i.opcode() == Opcode::kDot || i.opcode() == Opcode::kConvolution ||
         (i.opcode() == Opcode::kFusion && i.attrs().fusion_kind() == "kOutput");
}

std::string WhySynchronous(const Instruction& i, const target::Target& target) {
  if (hlo::FrontendAttribute(i, std::string(kDemotedFrom))) return "nothing covers it";
  if (AsyncFormOf(i, target, {}) != AsyncForm::kNone) {
    return "no pass made it asynchronous (async-collectives)";
  }
  const std::string_view kind = hlo::OpcodeName(i.opcode());
  const std::string& chip = target.chip().name;
  if (i.operands().size() > 1 &&
      (i.opcode() == Opcode::kCollectivePermute || i.opcode() == Opcode::kAllGather)) {
    return fmt::format("{} of several arrays are synchronous", Plural(kind));
  }
  const Bytes least = LeastOffLoaded(i.opcode(), target.chip().sparse_core);
  if (least > Bytes(0)) {
    return fmt::format("the SparseCores of {} take {} of {} bytes and more", chip, Plural(kind),
                       least.value());
  }
  if (i.opcode() == Opcode::kAllGather)
    return fmt::format("{} has no asynchronous all-gathers", chip);
  return fmt::format("{} are synchronous on TPUs by default", Plural(kind));
}

absl::StatusOr<bool> MakeCollectivesAsync(hlo::Module& module, const PassContext& context,
                                          const AsyncOptions& options) {
  bool changed = false;
  for (Computation* computation : ControlComputations(module)) {
    for (Instruction* i : hlo::Walk(computation->PostOrder())) {
      switch (AsyncFormOf(*i, context.target, options)) {
        case AsyncForm::kNone:
          continue;
        case AsyncForm::kPermute:
          Split(i, Opcode::kCollectivePermuteStart, Opcode::kCollectivePermuteDone,
                hlo::MakeTupleShape({i->operand(0)->shape(), i->shape(), Flag(), Flag()}));
          break;
        case AsyncForm::kOffLoaded:
          OffLoad(i);
          break;
        case AsyncForm::kGather:
          Split(i, Opcode::kAllGatherStart, Opcode::kAllGatherDone,
                hlo::MakeTupleShape({i->operand(0)->shape(), i->shape()}));
          break;
      }
      changed = true;
    }
  }
  return changed;
}

}  // namespace tpusim::passes
