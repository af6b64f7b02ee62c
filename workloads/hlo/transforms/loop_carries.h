// Simplifies and rebuilds the carries of loops.
//
//   * an element that the body forwards is replaced by its initial value behind the loop; a scalar
//     constant is replaced in the body and the condition too
//   * an element that is read only to compute itself is removed
//
// Loops keep their names, and the remaining elements their order. LoopCarry is the entry point of
// every pass that changes what a loop carries.
#ifndef TPUSIM_WORKLOADS_HLO_TRANSFORMS_LOOP_CARRIES_H_
#define TPUSIM_WORKLOADS_HLO_TRANSFORMS_LOOP_CARRIES_H_

#include <cstdint>
#include <vector>

#include "workloads/hlo/ir/ir.h"

namespace tpusim::hlo {

// Returns whether anything changed.
bool SimplifyLoopCarries(Module& module);

// A loop whose carry can be changed: its tuples are only taken apart, and its body and condition
// have no other caller.
class LoopCarry {
 public:
  // Returns false if the loop has another form.
  static bool Find(Instruction* loop, LoopCarry* carry);

  Instruction* loop() const { return loop_; }
  Computation* body() const { return loop_->called()[0]; }
  Computation* condition() const { return loop_->called()[1]; }
  size_t size() const { return loop_->operand(0)->operands().size(); }
  Instruction* initial(size_t n) const { return loop_->operand(0)->operand(n); }
  Instruction* next(size_t n) const { return body()->root()->operand(n); }
  // The reads of element n in the body, in the condition and behind the loop.
  const std::vector<Instruction*>& in_body(size_t n) const { return reads_[0][n]; }
  const std::vector<Instruction*>& in_condition(size_t n) const { return reads_[1][n]; }
  const std::vector<Instruction*>& behind(size_t n) const { return reads_[2][n]; }
  // Whether the body returns element n as the array that it got (hlo::ForwardsElement).
  bool Forwards(size_t n) const;

  // An element of another carry: an old one by index, with its new initial value and the value that
  // the body returns. An old element that is left out must have no live reads behind the loop, and
  // in the body none that the others need.
  struct Element {
    int64_t old = -1;  // -1: a new element
    Instruction* initial = nullptr;
    Instruction* next = nullptr;  // null for a new element, which the body forwards
  };
  // The present elements.
  std::vector<Element> elements() const;
  // Returns the reads in the body of the new elements, in order.
  std::vector<Instruction*> Rebuild(const std::vector<Element>& elements);

 private:
  Instruction* loop_ = nullptr;
  Instruction *body_parameter_ = nullptr, *condition_parameter_ = nullptr;
  std::vector<std::vector<Instruction*>> reads_[3];
};

// The loops of a module whose bodies and conditions have one caller.
std::vector<Instruction*> LoopsWithOwnBodies(const Module& module);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_TRANSFORMS_LOOP_CARRIES_H_
