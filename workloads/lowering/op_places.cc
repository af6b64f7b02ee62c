#include "workloads/lowering/op_places.h"

#include <algorithm>
#include <set>

#include "workloads/hlo/analysis/call_graph.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/lowering/limits.h"
#include "workloads/lowering/op_info.h"

namespace tpusim::lowering {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

isa::SourcePlace PlaceOf(const Instruction& i) { return {i.op_name(), i.SourceLocation()}; }

// Both compilers put these wherever it suits them.
bool DoesWork(Opcode opcode) {
  return !hlo::IsFree(opcode) && opcode != Opcode::kBroadcast && opcode != Opcode::kReshape &&
         opcode != Opcode::kConvert && opcode != Opcode::kCopy && opcode != Opcode::kFusion;
}

isa::OpPlaces PlacesOfFusion(const Instruction& fusion) {
  isa::OpPlaces places{PlaceOf(fusion), {}};
  std::set<isa::SourcePlace> covered;
  const Instruction *product = nullptr, *last = nullptr;
  std::vector<const Computation*> open(fusion.called().begin(), fusion.called().end());
  while (!open.empty()) {
    const Computation& computation = *open.back();
    open.pop_back();
    for (const Instruction* i : computation.instructions()) {
      if (i->opcode() == Opcode::kFusion) {
        open.insert(open.end(), i->called().begin(), i->called().end());
      }
      if (!DoesWork(i->opcode()) || PlaceOf(*i).source.empty()) continue;
      covered.insert(PlaceOf(*i));
      last = i;
      if (product == nullptr && hlo::IsProduct(i->opcode())) product = i;
    }
  }
  if (product != nullptr) {
    places.main = PlaceOf(*product);
  } else if (places.main.source.empty() && last != nullptr) {
    places.main = PlaceOf(*last);
  }
  places.covered.assign(covered.begin(), covered.end());
  return places;
}

isa::SourcePlace PlaceOfResult(const Instruction& i) {
  return i.opcode() == Opcode::kFusion ? PlacesOfFusion(i).main : PlaceOf(i);
}

// Returns the place of the first use that has a line, else of what the value is made from.
isa::SourcePlace PlaceBeside(const Instruction& value) {
  std::vector<const Instruction*> uses(value.users().begin(), value.users().end());
  const int64_t most = limits::kPlacesBeside.most();
  for (int64_t n = 0; n < std::ssize(uses) && n < most; ++n) {
    if (const isa::SourcePlace place = PlaceOfResult(*uses[n]); !place.source.empty()) return place;
    uses.insert(uses.end(), uses[n]->users().begin(), uses[n]->users().end());
  }
  const Instruction* from = &value;
  for (int64_t n = 0; n < most && !from->operands().empty(); ++n) {
    from = from->operand(0);
    if (const isa::SourcePlace place = PlaceOfResult(*from); !place.source.empty()) return place;
  }
  if (std::ssize(uses) > most || !from->operands().empty()) limits::kPlacesBeside.Reached();
  return PlaceOf(value);
}

}  // namespace

isa::PlacesOfOps PlacesOfOperations(const hlo::Module& module) {
  isa::PlacesOfOps places;
  for (const Computation* computation : hlo::ControlComputations(module)) {
    for (const Instruction* i : computation->instructions()) {
      const bool fusion = i->opcode() == Opcode::kFusion;
      const bool lost = i->SourceLocation().empty() && !hlo::IsFree(i->opcode());
      if (!fusion && !lost) continue;
      isa::OpPlaces of = fusion ? PlacesOfFusion(*i) : isa::OpPlaces{PlaceOf(*i), {}};
      if (of.main.source.empty()) of.main = PlaceBeside(*i);
      const bool starts = hlo::IsAsyncStart(i->opcode());
      places.emplace(starts ? InfoOfWhole(*i).name : i->name(), std::move(of));
    }
  }
  return places;
}

}  // namespace tpusim::lowering
