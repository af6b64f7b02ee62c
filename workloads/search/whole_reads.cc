#include "workloads/search/whole_reads.h"

#include <algorithm>
#include <set>

#include "workloads/hlo/analysis/loop_stacks.h"
#include "workloads/hlo/analysis/underlying.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"

namespace tpusim::search {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

// Whether all elements of the operands are needed for all elements of the result.
bool KeepsAll(const Instruction& i) {
  const Opcode opcode = i.opcode();
  // Of a select, one of two may never be looked at.
  if (hlo::IsElementwise(i)) return opcode != Opcode::kSelect;
  if (hlo::IsIndexMap(opcode)) return !hlo::ShiftsElements(opcode);
  return opcode == Opcode::kCopy || opcode == Opcode::kReduce || hlo::IsCollective(opcode);
}

class WholeReadFinder {
 public:
  WholeReadFinder(const hlo::KnownValues& values, const LoopTrips& trips)
      : values_(values), trips_(trips) {}

  // Whether all of an array of `computation` is read; in the body of a loop, by each iteration.
  bool IsRead(Instruction* value) {
    if (!seen_.insert(value).second) return false;
    const Computation& computation = *value->parent();
    for (Instruction* user : value->users()) {
      // Of a ragged dot, groups may be empty.
      if (user->opcode() == Opcode::kDot || user->opcode() == Opcode::kConvolution) return true;
      if (user->opcode() == Opcode::kTuple) {
        for (size_t n = 0; n < user->operands().size(); ++n) {
          if (user->operand(n) == value && TupleReads(user, static_cast<int64_t>(n))) return true;
        }
      } else if (user->opcode() == Opcode::kCall) {  // a shard_map
        for (size_t n = 0; n < user->operands().size(); ++n) {
          if (user->operand(n) == value && IsRead(user->called()[0]->parameters()[n])) return true;
        }
      } else if (KeepsAll(*user)) {
        if (IsResult(*user, computation) || IsRead(user)) return true;
      }
    }
    return false;
  }

 private:
  // A result of the program that is made, not forwarded.
  static bool IsResult(const Instruction& made, const Computation& computation) {
    if (&computation != made.parent()->parent()->entry()) return false;
    const Instruction* root = computation.root();
    return root == &made || (root->opcode() == Opcode::kTuple &&
                             std::ranges::find(root->operands(), &made) != root->operands().end());
  }

  bool TupleReads(Instruction* tuple, int64_t element) {
    return std::ranges::any_of(tuple->users(), [&](Instruction* loop) {
      return loop->opcode() == Opcode::kWhile && LoopReads(*loop, element);
    });
  }

  bool LoopReads(const Instruction& loop, int64_t element) {
    const absl::StatusOr<int64_t> trips = trips_(loop);
    if (!trips.ok() || *trips < 1) return false;
    const hlo::LoopFacts facts(loop, values_, *trips);
    for (Instruction* i : loop.called()[0]->instructions()) {
      if (hlo::CarriedElement(*i, *loop.called()[0]) != element) continue;
      if (IsRead(i)) return true;
      for (Instruction* user : i->users()) {
        if (TakesALayer(user, i, facts) && IsRead(user)) return true;
      }
    }
    return false;
  }

  // Whether it slices one slot of the stack, each in one iteration.
  static bool TakesALayer(Instruction* slice, const Instruction* stack,
                          const hlo::LoopFacts& loop) {
    if (slice->opcode() != Opcode::kDynamicSlice || slice->operand(0) != stack) return false;
    const auto slot = hlo::SlotOf(slice);
    return slot && hlo::OrderOf(*slot, loop) != hlo::SlotOrder::kNone;
  }

  const hlo::KnownValues& values_;
  const LoopTrips& trips_;
  std::set<const Instruction*> seen_;
};

}  // namespace

std::vector<bool> WholeReads(const hlo::Module& module, const LoopTrips& trips) {
  const hlo::KnownValues values(module);
  std::vector<bool> whole;
  for (Instruction* argument : module.entry()->parameters()) {
    whole.push_back(argument->shape().IsArray() && WholeReadFinder(values, trips).IsRead(argument));
  }
  return whole;
}

bool StartsOnHost(const tpusim::Workload& workload, size_t argument) {
  const auto& memories = workload.argument_memory_kinds();
  const auto n = static_cast<int>(argument);
  return n < memories.size() && hlo::IsHostMemoryKind(memories[n]);
}

std::vector<Bytes> BytesRead(const hlo::Module& module, const tpusim::Workload& workload,
                             const LoopTrips& trips) {
  const std::vector<bool> whole = WholeReads(module, trips);
  std::vector<Bytes> read(whole.size(), Bytes(0));
  for (size_t n = 0; n < whole.size(); ++n) {
    if (!whole[n] || StartsOnHost(workload, n)) continue;
    read[n] = module.entry()->parameters()[n]->shape().ByteSize();
  }
  return read;
}

}  // namespace tpusim::search
