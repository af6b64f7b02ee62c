#include "workloads/hlo/analysis/whole_writes.h"

#include "workloads/hlo/analysis/in_place.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/rules/cost.h"

namespace tpusim::hlo {
namespace {

bool IsElement(const Instruction& i, int64_t index) {
  return i.opcode() == Opcode::kGetTupleElement && i.attrs().tuple_index() == index &&
         i.operand(0)->opcode() == Opcode::kParameter;
}

// The only instruction that reads the value, looked for through bitcasts that nothing else reads.
const Instruction* OnlyReader(const Instruction* value) {
  while (value->users().size() == 1 && value->users()[0]->opcode() == Opcode::kBitcast) {
    value = value->users()[0];
  }
  return value->users().size() == 1 ? value->users()[0] : nullptr;
}

// Whether row i of the array is what iteration i writes, i = 0, 1, ... to the last.
bool WritesRowByRow(const Instruction& update, const LoopCounter& counter, int64_t trips) {
  const Shape& array = update.shape();
  const Shape& part = update.operand(1)->shape();
  int64_t along = -1;
  for (int64_t d = 0; d < array.rank(); ++d) {
    if (part.dims[d] == array.dims[d]) continue;
    if (along >= 0) return false;
    along = d;
  }
  if (along < 0) return true;
  const size_t start = static_cast<size_t>(2 + along);
  return start < update.operands().size() && IsElement(*update.operand(start), counter.index) &&
         counter.start == 0 && counter.step == 1 && part.dims[along] == 1 &&
         trips == array.dims[along];
}

}  // namespace

bool WritesWhole(const Instruction& loop, int64_t index) {
  const auto counter = CounterWithStart(loop);
  const int64_t trips = TripCount(loop).value_or(0);
  if (!counter.has_value() || trips < 1) return false;
  const Computation& body = *loop.called()[0];
  const Instruction* element = nullptr;
  for (const Computation* called : loop.called()) {
    for (const Instruction* i : called->instructions()) {
      if (!IsElement(*i, index)) continue;
      if (element != nullptr || called != &body) return false;
      element = i;
    }
  }
  if (element == nullptr || body.root()->opcode() != Opcode::kTuple) return false;
  const Instruction* update = OnlyReader(element);
  if (update == nullptr || update->opcode() != Opcode::kDynamicUpdateSlice ||
      WithoutBitcasts(update->operand(0)) != element || OnlyReader(update) != body.root()) {
    return false;
  }
  const Instruction* next = body.root()->operand(static_cast<size_t>(index));
  return WithoutBitcasts(next) == update && WritesRowByRow(*update, *counter, trips);
}

}  // namespace tpusim::hlo
