#include "workloads/remat/values.h"

#include <unordered_set>

#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/transforms/checkpoint_names.h"
#include "workloads/sharding/text/markers.h"

namespace tpusim::remat {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

bool GivesOn(const Instruction& i) {
  if (i.operands().size() != 1 || !i.shape().IsArray() ||
      !hlo::SameDims(i.shape(), i.operand(0)->shape())) {
    return false;
  }
  return i.opcode() == Opcode::kCopy || i.opcode() == Opcode::kOptBarrier ||
         hlo::CheckpointName(i).has_value() || hlo::PlacementOf(i).has_value() ||
         sharding::IsTarget(i, sharding::kConstraint) ||
         sharding::IsTarget(i, sharding::kResultConstraint) ||
         sharding::IsTarget(i, sharding::kBarrierMarker);
}

bool RunsComputations(const Instruction& i) {
  return i.opcode() == Opcode::kWhile || i.opcode() == Opcode::kConditional ||
         i.opcode() == Opcode::kCall;
}

}  // namespace

Instruction* Behind(Instruction* value, std::vector<Instruction*>* passed) {
  while (true) {
    if (GivesOn(*value)) {
      if (value->opcode() == Opcode::kOptBarrier && !hlo::CheckpointName(*value) &&
          passed != nullptr) {
        passed->push_back(value);
      }
      value = value->operand(0);
      continue;
    }
    if (value->opcode() != Opcode::kGetTupleElement) return value;
    Instruction* tuple = value->operand(0);
    std::vector<Instruction*> barriers;
    while (tuple->opcode() == Opcode::kOptBarrier) {
      barriers.push_back(tuple);
      tuple = tuple->operand(0);
    }
    if (tuple->opcode() != Opcode::kTuple) return value;
    if (passed != nullptr) passed->insert(passed->end(), barriers.begin(), barriers.end());
    value = tuple->operand(value->attrs().tuple_index());
  }
}

Instruction* ElementOf(Instruction* tuple, int64_t index) {
  while (tuple->opcode() == Opcode::kOptBarrier || tuple->opcode() == Opcode::kCopy) {
    tuple = tuple->operand(0);
  }
  return tuple->opcode() == Opcode::kTuple ? tuple->operand(index) : nullptr;
}

const Computation* HomeOf(const Computation* computation, const Callers& callers) {
  for (auto at = callers.find(computation);
       at != callers.end() && at->second->opcode() != Opcode::kWhile;
       at = callers.find(computation)) {
    computation = at->second->parent();
  }
  return computation;
}

std::optional<Crossing> CrossingOf(const Instruction& value) {
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
  return Crossing{inwards, call.operands()[static_cast<size_t>(index)], text,
                  attribute(sharding::kManualAxes)};
}

Instruction* Resolved(Instruction* value, const Callers& callers) {
  while (true) {
    value = Behind(value);
    const bool element = value->opcode() == Opcode::kGetTupleElement;
    Instruction* source = element ? value->operand(0) : value;
    const auto part = [&](Instruction* whole) {
      return element ? ElementOf(whole, value->attrs().tuple_index()) : whole;
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
    } else if (const auto in = CrossingOf(*value); in && in->inwards) {
      const auto out = CrossingOf(*Behind(in->value));
      if (out && !out->inwards && in->SameDivision(*out)) next = out->value;
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

int64_t CarriedElement(const Instruction& read, const Computation& body) {
  if (read.opcode() != Opcode::kGetTupleElement || read.parent() != &body ||
      read.operand(0)->opcode() != Opcode::kParameter) {
    return -1;
  }
  return read.attrs().tuple_index();
}

int64_t ElementBehind(const Instruction& read, const Instruction& loop) {
  const bool is = read.opcode() == Opcode::kGetTupleElement && read.operand(0) == &loop;
  return is ? read.attrs().tuple_index() : -1;
}

bool IsInvariant(const Instruction& loop, int64_t element) {
  const Computation& body = *loop.called()[0];
  Instruction* next = ElementOf(body.root(), element);
  return next != nullptr && CarriedElement(*Behind(next), body) == element;
}

}  // namespace tpusim::remat
