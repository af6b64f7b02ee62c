#include "workloads/target/async_form.h"

#include <fmt/format.h>

#include <string_view>

#include "workloads/hlo/ir/annotations.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"

namespace tpusim::target {
namespace {

using hlo::Instruction;
using hlo::Opcode;

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

// "all-reduce" to "all-reduces".
std::string Plural(std::string_view kind) { return std::string(kind) + "s"; }

}  // namespace

// The TPU compiler of v5e leaves permutes whole on slices above some size.
bool HasAsyncPermutes(const Target& target) {
  return target.config().topology.ChipsPerSlice() <= target.policy().async_permutes_most_chips;
}

AsyncForm AsyncFormOf(const Instruction& i, const Target& target, const AsyncOptions& options) {
  const bool one = i.operands().size() == 1;
  if (options.permutes && i.opcode() == Opcode::kCollectivePermute && one &&
      HasAsyncPermutes(target)) {
    return AsyncForm::kPermute;
  }
  if (options.offload && OffLoads(i, target.chip().sparse_core)) return AsyncForm::kOffLoaded;
  const bool gathers = options.all_gathers && target.policy().gathers_in_flight > 0;
  return gathers && i.opcode() == Opcode::kAllGather && one ? AsyncForm::kGather : AsyncForm::kNone;
}

bool MayBecomeAsync(const Instruction& collective, const Target& target) {
  return LeastOffLoaded(collective.opcode(), target.chip().sparse_core) > Bytes(0) ||
         AsyncFormOf(collective, target, {}) != AsyncForm::kNone;
}

std::string WhySynchronous(const Instruction& i, const Target& target) {
  if (hlo::annotations::kDemotedFrom.On(i)) return "nothing covers it";
  if (AsyncFormOf(i, target, {}) != AsyncForm::kNone) {
    return "no pass made it asynchronous (async-collectives)";
  }
  const std::string_view kind = hlo::OpcodeName(i.opcode());
  const std::string& chip = target.chip().name;
  if (i.operands().size() > 1 &&
      (i.opcode() == Opcode::kCollectivePermute || i.opcode() == Opcode::kAllGather)) {
    return fmt::format("{} of several arrays are synchronous", Plural(kind));
  }
  if (i.opcode() == Opcode::kCollectivePermute && !HasAsyncPermutes(target)) {
    return fmt::format("permutes are synchronous on {} slices of more than {} chips", chip,
                       target.policy().async_permutes_most_chips);
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

}  // namespace tpusim::target
