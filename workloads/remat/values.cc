#include "workloads/remat/values.h"

#include <unordered_set>

#include "workloads/hlo/analysis/underlying.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/sharding/text/markers.h"

namespace tpusim::remat {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

bool RunsComputations(const Instruction& i) {
  return i.opcode() == Opcode::kWhile || i.opcode() == Opcode::kConditional ||
         i.opcode() == Opcode::kCall;
}

}  // namespace

const Computation* HomeOf(const Computation* computation, const Callers& callers) {
  for (auto at = callers.find(computation);
       at != callers.end() && at->second->opcode() != Opcode::kWhile;
       at = callers.find(computation)) {
    computation = at->second->parent();
  }
  return computation;
}

std::optional<RegionBoundary> BoundaryOf(const Instruction& value) {
  const bool element = value.opcode() == Opcode::kGetTupleElement;
  const Instruction& call = element ? *value.operand(0) : value;
  const bool inwards = sharding::IsTarget(call, sharding::kGlobalToLocal);
  if (!inwards && !sharding::IsTarget(call, sharding::kLocalToGlobal)) return std::nullopt;
  const int64_t index = element ? value.attrs().tuple_index() : 0;
  if (!value.shape().IsArray() || index >= static_cast<int64_t>(call.operands().size())) {
    return std::nullopt;
  }
  const auto attribute = [&](const char* key) {
    return hlo::FrontendAttribute(call, key).value_or("");
  };
  // #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>, <@mesh, [{}, {}]>]>
  std::string text = attribute(inwards ? sharding::kInShardings : sharding::kOutShardings);
  size_t begin = text.find("<@");
  for (int64_t n = 0; n < index && begin != std::string::npos; ++n)
    begin = text.find("<@", begin + 2);
  if (begin == std::string::npos) return std::nullopt;
  text = text.substr(begin, text.find("<@", begin + 2) - begin);
  text.resize(text.find_last_not_of(", ]>") + 1);
  return RegionBoundary{inwards, call.operands()[static_cast<size_t>(index)], text,
                        attribute(sharding::kManualAxes)};
}

Instruction* Resolved(Instruction* value, const Callers& callers) {
  while (true) {
    value = hlo::Underlying(value);
    const bool element = value->opcode() == Opcode::kGetTupleElement;
    Instruction* source = element ? value->operand(0) : value;
    const auto part = [&](Instruction* whole) {
      return element ? hlo::TupleElement(whole, value->attrs().tuple_index()) : whole;
    };
    Instruction* next = nullptr;
    if (source->opcode() == Opcode::kCall && source->called().size() == 1) {
      next = part(source->called()[0]->root());
    } else if (source->opcode() == Opcode::kParameter) {
      const auto caller = callers.find(source->parent());
      if (caller == callers.end() || caller->second->opcode() == Opcode::kWhile) return value;
      Instruction* call = caller->second;
      size_t n = static_cast<size_t>(source->attrs().parameter_number());
      for (size_t branch = 0;
           call->opcode() == Opcode::kConditional && branch < call->called().size(); ++branch) {
        if (call->called()[branch] == source->parent()) n = branch + 1;
      }
      next = n < call->operands().size() ? part(call->operand(n)) : nullptr;
    } else if (const auto in = BoundaryOf(*value); in && in->inwards) {
      const auto out = BoundaryOf(*hlo::Underlying(in->value));
      if (out && !out->inwards && in->SameSharding(*out)) next = out->value;
    }
    if (next == nullptr) return value;
    value = next;
  }
}

Callers CallersOf(const hlo::Module& module) {
  Callers callers;
  for (const Computation* computation : module.computations()) {
    for (Instruction* i : computation->instructions()) {
      if (!RunsComputations(*i)) continue;
      for (const Computation* called : i->called()) callers[called] = i;
    }
  }
  return callers;
}

void GiveOwnBodies(hlo::Module& module) {
  std::unordered_set<const Computation*> taken = {module.entry()};
  std::vector<Computation*> work = {module.entry()};
  while (!work.empty()) {
    Computation* computation = work.back();
    work.pop_back();
    for (Instruction* i : computation->instructions()) {
      if (!RunsComputations(*i)) continue;
      std::vector<Computation*> called = i->called();
      for (Computation*& callee : called) {
        if (!taken.insert(callee).second) {
          callee = module.CloneComputation(*callee);
          taken.insert(callee);
        }
        work.push_back(callee);
      }
      if (called != i->called()) i->set_called(called);
    }
  }
}

}  // namespace tpusim::remat
