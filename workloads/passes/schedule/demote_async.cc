#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "workloads/cost/schedule_graph.h"
#include "workloads/hlo/analysis/async.h"
#include "workloads/hlo/ir/annotations.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/passes/schedule/reasons.h"
#include "workloads/passes/schedule/schedule.h"

namespace tpusim::passes {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

// "all-gather.3-done" is what is left of "all-gather.3".
std::string NameOfWhole(const Instruction& done) {
  std::string name = done.name();
  const size_t suffix = name.rfind("-done");
  if (suffix != std::string::npos) name.erase(suffix, 5);  // number: letters of a name
  return name;
}

// The all-gather that does the work of both halves and takes the place of the done.
Instruction* Whole(Instruction& start, Instruction& done) {
  Computation* computation = done.parent();
  std::string name = NameOfWhole(done);
  computation->parent()->ReleaseName(name);
  Instruction* whole = computation->Add(Opcode::kAllGather, done.shape(), start.operands(), name);
  whole->mutable_attrs() = start.attrs();
  hlo::annotations::kDemotedFrom.Set(whole, start.name());
  start.MoveControlTo(whole, whole);
  done.MoveControlTo(whole, whole);
  done.ReplaceAllUsesWith(whole);
  return whole;
}

bool DemoteIn(Computation& computation, const Records& records) {
  int products = 0;
  std::unordered_map<const Instruction*, int> products_before;  // looked up, never iterated
  std::vector<std::pair<Instruction*, Instruction*>> halves;
  std::unordered_map<const Instruction*, Instruction*> in_place_of;  // likewise; null: nothing
  for (Instruction* i : computation.schedule()) {
    if (cost::CarriesGathers(*i)) ++products;
    if (i->opcode() == Opcode::kAllGatherStart) products_before[i] = products;
    if (i->opcode() != Opcode::kAllGatherDone) continue;
    Instruction& start = hlo::StartOf(*i);
    const bool covered = products_before.at(&start) != products;
    records.Add(covered ? reasons::kCovered : reasons::kDemoted, start.name(),
                {{"done", i->name()}});
    if (covered) continue;
    halves.emplace_back(&start, i);
    in_place_of[&start] = nullptr;
    in_place_of[i] = Whole(start, *i);
  }
  if (halves.empty()) return false;
  std::vector<Instruction*> schedule;
  for (Instruction* i : computation.schedule()) {
    const auto replaced = in_place_of.find(i);
    Instruction* now = replaced == in_place_of.end() ? i : replaced->second;
    if (now != nullptr) schedule.push_back(now);
  }
  for (const auto& [start, done] : halves) {
    computation.Remove(done);
    computation.Remove(start);
  }
  computation.set_schedule(std::move(schedule));
  return true;
}

}  // namespace

absl::StatusOr<bool> DemoteAsync(hlo::Module& module, const PassContext& context) {
  bool changed = false;
  for (Computation* computation : context.facts->CallsOf(module).control()) {
    if (DemoteIn(*computation, context.records)) changed = true;
  }
  return changed;
}

}  // namespace tpusim::passes
