#include <map>
#include <utility>

#include "workloads/hlo/analysis/call_graph.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/passes/layout/layout_problem.h"

namespace tpusim::passes {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;
using hlo::Shape;

// Leaves in pre-order take their orders.
void SetOrders(Shape& shape, const std::vector<int32_t>& values, const std::vector<Dims>& orders,
               size_t& leaf) {
  if (shape.IsTuple()) {
    for (Shape& element : shape.tuple) SetOrders(element, values, orders, leaf);
    return;
  }
  const int32_t value = values[leaf++];
  if (value >= 0) shape.layout.minor_to_major = orders[static_cast<size_t>(value)];
}

class Applier {
 public:
  Applier(hlo::Module& module, const LayoutProblem& problem, const std::vector<Dims>& orders)
      : module_(module), problem_(problem), orders_(orders) {}

  bool Run() {
    const std::vector<Computation*> computations = ControlComputations(module_);
    std::vector<std::vector<Instruction*>> found;
    for (Computation* computation : computations) {
      found.push_back(computation->PostOrder());
      for (Instruction* i : found.back()) SetLayout(i);
    }
    for (const std::vector<Instruction*>& instructions : found) {
      for (Instruction* i : instructions) SetOperands(i);
    }
    const auto root = problem_.wanted.find({module_.entry()->root()->id(), -1});
    if (root != problem_.wanted.end()) {
      module_.entry()->set_root(In(module_.entry()->root(), OrderOf(root->second)));
    }
    for (const std::vector<Instruction*>& instructions : found) {
      for (Instruction* i : instructions) SliceBeforeCopy(i);
    }
    for (Computation* computation : computations) {
      changed_ = computation->RemoveDead() > 0 || changed_;
    }
    return changed_;
  }

 private:
  const Dims& OrderOf(int32_t value) const { return orders_[static_cast<size_t>(value)]; }

  void SetLayout(Instruction* i) {
    Shape shape = i->shape();
    size_t leaf = 0;
    SetOrders(shape, problem_.made.at(i), orders_, leaf);
    changed_ = changed_ || !(shape == i->shape());
    i->set_shape(std::move(shape));
  }

  // `value` in this order: itself, or a copy.
  Instruction* In(Instruction* value, const Dims& order) {
    if (hlo::MinorToMajor(value->shape()) == order) return value;
    const auto [at, fresh] = copies_.try_emplace({value->id(), order}, nullptr);
    changed_ = true;
    if (fresh) {
      Computation* computation = value->parent();
      const Shape shape = hlo::WithOrder(value->shape(), order);
      if (IsMadeAnywhere(*value)) {
        at->second =
            computation->Add(value->opcode(), shape, value->operands(), value->name(), value);
      } else {
        at->second = computation->Add(Opcode::kCopy, shape, {value}, "copy");
        *at->second->mutable_attrs().mutable_metadata() = value->attrs().metadata();
      }
    }
    return at->second;
  }

  // The value that says in which order `i` takes operand `n`; `leaf` is that of a tuple `i` in
  // which the operand is.
  int32_t Taken(const Instruction& i, size_t n, size_t leaf) const {
    const auto wanted = problem_.wanted.find({i.id(), static_cast<int64_t>(n)});
    if (wanted != problem_.wanted.end()) return wanted->second;
    const Instruction& operand = *i.operand(n);
    const bool own = i.opcode() == Opcode::kTuple || TakesOwnOrder(i, operand);
    if (IsMadeAnywhere(operand) && own) return problem_.made.at(&i)[leaf];
    return problem_.seen.at(&operand)[0];
  }

  void SetOperands(Instruction* i) {
    size_t leaf = 0;
    for (size_t n = 0; n < i->operands().size(); ++n) {
      Instruction* operand = i->operand(n);
      const size_t leaves = problem_.seen.contains(operand) ? problem_.seen.at(operand).size() : 1;
      if (HasOrder(operand->shape())) {
        Instruction* in = In(operand, OrderOf(Taken(*i, n, leaf)));
        if (in != operand) i->ReplaceOperand(n, in);
      }
      if (i->opcode() == Opcode::kTuple) leaf += leaves;
    }
  }

  // A slice of an array that was copied into another layout becomes a copy of the slice.
  void SliceBeforeCopy(Instruction* i) {
    if (i->opcode() != Opcode::kSlice && i->opcode() != Opcode::kDynamicSlice) return;
    Instruction* copy = i->operand(0);
    if (copy->opcode() != Opcode::kCopy) return;
    const auto at = copies_.find({copy->operand(0)->id(), hlo::MinorToMajor(copy->shape())});
    if (at == copies_.end() || at->second != copy) return;
    Computation* computation = i->parent();
    Instruction* slice = computation->Add(
        i->opcode(), hlo::WithOrder(i->shape(), hlo::MinorToMajor(copy->operand(0)->shape())),
        i->operands(), i->name(), i);
    slice->ReplaceOperand(0, copy->operand(0));
    Instruction* turned = computation->Add(Opcode::kCopy, i->shape(), {slice}, "copy", i);
    i->ReplaceAllUsesWith(turned);
    if (i->IsRoot()) computation->set_root(turned);
  }

  hlo::Module& module_;
  const LayoutProblem& problem_;
  const std::vector<Dims>& orders_;
  std::map<std::pair<int64_t, Dims>, Instruction*> copies_;
  bool changed_ = false;
};

}  // namespace

bool ApplyLayouts(hlo::Module& module, const LayoutProblem& problem,
                  const std::vector<Dims>& orders) {
  return Applier(module, problem, orders).Run();
}

}  // namespace tpusim::passes
