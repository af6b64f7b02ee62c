#include "workloads/lowering/op_places.h"

#include <algorithm>
#include <set>

#include "workloads/hlo/analysis/call_graph.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/lowering/op_info.h"

namespace tpusim::lowering {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

isa::Place PlaceOf(const Instruction& i) { return {i.op_name(), i.SourceLocation()}; }

// Both compilers put these wherever it suits them.
bool DoesWork(Opcode opcode) {
  return !hlo::IsFree(opcode) && opcode != Opcode::kBroadcast && opcode != Opcode::kReshape &&
         opcode != Opcode::kConvert && opcode != Opcode::kCopy && opcode != Opcode::kFusion;
}

isa::OpPlaces PlacesOfFusion(const Instruction& fusion) {
  isa::OpPlaces places{PlaceOf(fusion), {}};
  std::set<isa::Place> covered;
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

// How far it is looked for a use with a line: what is in between has none and is seldom longer.
constexpr int kMostUses = 16;

// Where the first use of a value is that has a line; its own place if none has.
isa::Place PlaceOfUse(const Instruction& value) {
  std::vector<const Instruction*> uses(value.users().begin(), value.users().end());
  for (size_t n = 0; n < uses.size() && n < kMostUses; ++n) {
    const Instruction& use = *uses[n];
    if (use.opcode() == Opcode::kFusion) {
      if (const isa::Place place = PlacesOfFusion(use).main; !place.source.empty()) return place;
    } else if (const isa::Place place = PlaceOf(use); !place.source.empty()) {
      return place;
    }
    uses.insert(uses.end(), use.users().begin(), use.users().end());
  }
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
      if (of.main.source.empty()) of.main = PlaceOfUse(*i);
      const bool starts = hlo::IsAsyncStart(i->opcode());
      places.emplace(starts ? InfoOfWhole(*i).name : i->name(), std::move(of));
    }
  }
  return places;
}

}  // namespace tpusim::lowering
