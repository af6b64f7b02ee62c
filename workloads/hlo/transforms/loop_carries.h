// What loops carry around for nothing.
//
//   * an element that the body hands on as it got it is, behind the loop, what it was before;
//     if it is a scalar constant, the body and the condition have the constant themselves
//   * an element that nothing reads, but to compute the element itself, goes
//
// Loops keep their names, and the elements that stay keep their order.
#ifndef TPUSIM_WORKLOADS_HLO_TRANSFORMS_LOOP_CARRIES_H_
#define TPUSIM_WORKLOADS_HLO_TRANSFORMS_LOOP_CARRIES_H_

#include <cstdint>
#include <vector>

#include "workloads/hlo/ir/ir.h"

namespace tpusim::hlo {

// Whether there was any.
bool SimplifyLoopCarries(Module& module);

// A loop over a tuple that is only taken apart, with a body and a condition of its own: what
// its carry consists of can be changed.
class LoopCarry {
 public:
  // False: the loop is of another form.
  static bool Find(Instruction* loop, LoopCarry* carry);

  Instruction* loop() const { return loop_; }
  Computation* body() const { return loop_->called()[0]; }
  Computation* condition() const { return loop_->called()[1]; }
  size_t size() const { return loop_->operand(0)->operands().size(); }
  Instruction* initial(size_t n) const { return loop_->operand(0)->operand(n); }
  Instruction* next(size_t n) const { return body()->root()->operand(n); }
  // Reads of element n; in the body, in the condition, behind the loop.
  const std::vector<Instruction*>& in_body(size_t n) const { return reads_[0][n]; }
  const std::vector<Instruction*>& in_condition(size_t n) const { return reads_[1][n]; }
  const std::vector<Instruction*>& behind(size_t n) const { return reads_[2][n]; }
  // Whether the body returns element n as the array that it got (hlo::ForwardsElement).
  bool Forwards(size_t n) const;

  // Another carry: elements of the old one by index, each with its new initial value and what
  // the body gives on. Of those that go only dead reads are left behind the loop, and in the
  // body only what the others do not need.
  struct Element {
    int64_t old = -1;  // -1: a new one
    Instruction* initial = nullptr;
    Instruction* next = nullptr;  // null for a new one: as it got it
  };
  // Those that it has.
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
