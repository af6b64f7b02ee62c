#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "workloads/hlo/ir/opcode.h"
#include "workloads/passes/loops/loops.h"

namespace tpusim::passes {
namespace {

using hlo::Instruction;
using hlo::Opcode;

bool Narrows(const Instruction& i) {
  return i.opcode() == Opcode::kConvert && !i.has_control_edges() &&
         hlo::BitWidth(i.shape().element_type) < hlo::BitWidth(i.operand(0)->shape().element_type);
}

// Whether the result consists of elements of the first operand, at indices that do not depend on
// it.
bool TakesElements(const Instruction& i) {
  return hlo::IsIndexMap(i.opcode()) && i.shape().IsArray() && !i.has_control_edges() &&
         i.shape().ElementCount() <= i.operand(0)->shape().ElementCount() &&
         std::all_of(i.operands().begin() + 1, i.operands().end(),
                     [](const Instruction* o) { return o->shape().IsScalar(); });
}

class Narrower {
 public:
  Narrower(const hlo::LoopCarry& carry, int64_t trips) : carry_(carry), trips_(trips) {
    for (size_t n = 0; n < carry.size(); ++n) {
      if (!carry.Forwards(n) || !carry.initial(n)->shape().IsArray() ||
          hlo::OnHost(carry.initial(n)->shape())) {
        continue;
      }
      for (const Instruction* read : carry.in_body(n)) stacks_.emplace(read, n);
    }
  }

  bool Run() {
    bool changed = false;
    for (Instruction* i : carry_.body()->PostOrder()) {
      if (Narrows(*i)) changed |= Narrow(i);
    }
    if (changed) carry_.body()->RemoveDead();
    return changed;
  }

 private:
  bool Narrow(Instruction* convert) {
    std::vector<Instruction*> taken;  // from the slice that is converted up to the stack
    Instruction* stack = convert->operand(0);
    while (!stacks_.contains(stack)) {
      if (!TakesElements(*stack) || stack->users().size() > 1) return false;
      taken.push_back(stack);
      stack = stack->operand(0);
    }
    // A loop that leaves most of the stack alone has less to convert itself.
    const int64_t elements = convert->shape().ElementCount();
    if (SaturatedProduct(elements, trips_) < stack->shape().ElementCount()) return false;
    if (elements == stack->shape().ElementCount()) return false;  // as invariant as it is
    hlo::Computation* body = carry_.body();
    const hlo::PrimitiveType type = convert->shape().element_type;
    Instruction*& narrow = narrow_[{stacks_.at(stack), type}];
    if (narrow == nullptr) {
      hlo::Shape shape = stack->shape();
      shape.element_type = type;
      narrow = body->Add(Opcode::kConvert, shape, {stack}, convert->name(), convert);
    }
    Instruction* value = narrow;
    for (auto i = taken.rbegin(); i != taken.rend(); ++i) {
      hlo::Shape shape = (*i)->shape();
      shape.element_type = type;
      std::vector<Instruction*> operands = (*i)->operands();
      operands[0] = value;
      value = body->Add((*i)->opcode(), shape, operands, (*i)->name(), *i);
    }
    convert->ReplaceAllUsesWith(value);
    return true;
  }

  const hlo::LoopCarry& carry_;
  const int64_t trips_;
  // The element of the carry that an instruction reads; looked up, never iterated.
  std::unordered_map<const Instruction*, size_t> stacks_;
  std::map<std::pair<size_t, hlo::PrimitiveType>, Instruction*> narrow_;
};

}  // namespace

bool NarrowStacks(const hlo::LoopCarry& carry, int64_t trips) {
  return Narrower(carry, trips).Run();
}

}  // namespace tpusim::passes
