#include "workloads/lowering/kernel_places.h"

#include <set>

#include "workloads/hlo/analysis/call_graph.h"
#include "workloads/hlo/ir/opcode.h"

namespace tpusim::lowering {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

isa::Place PlaceOf(const Instruction& i) { return {i.op_name(), i.SourceLocation()}; }

bool IsNowhere(const isa::Place& place) { return place.scope.empty() && place.source.empty(); }

// Both compilers put these wherever it suits them.
bool DoesWork(Opcode opcode) {
  return !hlo::IsFree(opcode) && opcode != Opcode::kBroadcast && opcode != Opcode::kReshape &&
         opcode != Opcode::kConvert && opcode != Opcode::kCopy && opcode != Opcode::kFusion;
}

isa::KernelPlaces PlacesOf(const Instruction& fusion) {
  isa::KernelPlaces places{PlaceOf(fusion), {}};
  std::set<isa::Place> covered;
  const Instruction* product = nullptr;
  std::vector<const Computation*> open(fusion.called().begin(), fusion.called().end());
  while (!open.empty()) {
    const Computation& computation = *open.back();
    open.pop_back();
    if (IsNowhere(places.main)) places.main = PlaceOf(*computation.root());
    for (const Instruction* i : computation.instructions()) {
      if (i->opcode() == Opcode::kFusion) {
        open.insert(open.end(), i->called().begin(), i->called().end());
      }
      if (!DoesWork(i->opcode()) || IsNowhere(PlaceOf(*i))) continue;
      covered.insert(PlaceOf(*i));
      if (product == nullptr && hlo::IsProduct(i->opcode())) product = i;
    }
  }
  if (product != nullptr) places.main = PlaceOf(*product);
  places.covered.assign(covered.begin(), covered.end());
  return places;
}

}  // namespace

isa::PlacesOfKernels PlacesOfFusions(const hlo::Module& module) {
  isa::PlacesOfKernels places;
  for (const Computation* computation : hlo::ControlComputations(module)) {
    for (const Instruction* i : computation->instructions()) {
      if (i->opcode() == Opcode::kFusion) places.emplace(i->name(), PlacesOf(*i));
    }
  }
  return places;
}

}  // namespace tpusim::lowering
