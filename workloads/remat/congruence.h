// Proves that two instructions compute the same value.
//
// They do if their underlying instructions (hlo/analysis/underlying.h) are the same, or equal
// operations on equal values. Elements of loops are equal if they begin equal and each iteration
// makes equal values of equal ones; so are results of branches and of manual regions whose operands
// are equal. Between a forward loop and its backward loop (loop_pair.h), in an iteration of one and
// the iteration of the other that it belongs to:
//
//   * a slot that the backward body reads is what the forward body has written there
//   * indices are equal where numbers of iterations say so
//   * an element that is invariant in a loop is its initial value
//
// Nothing else is taken as equal: neither equal metadata, nor values of a random number generator
// with a state of its own.
#ifndef TPUSIM_WORKLOADS_REMAT_CONGRUENCE_H_
#define TPUSIM_WORKLOADS_REMAT_CONGRUENCE_H_

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "workloads/hlo/ir/ir.h"
#include "workloads/remat/loop_pair.h"
#include "workloads/remat/values.h"

namespace tpusim::remat {

// The pair at which a proof failed.
struct Difference {
  std::string why;
  int64_t proven = 0;  // pairs of values that were proven equal before
};

class Congruence {
 public:
  // `pair` is null where the values are in one computation. All of them must outlive this.
  Congruence(const Callers& callers, hlo::ModuleLoops& loops, const LoopPair* pair = nullptr)
      : callers_(callers), loops_(loops), pair_(pair) {}

  // Returns why `later`, in the backward loop if there is one, is not proven equal to `earlier`;
  // nullopt: it is equal.
  std::optional<Difference> Find(hlo::Instruction* later, hlo::Instruction* earlier);

 private:
  using Values = std::pair<hlo::Instruction*, hlo::Instruction*>;
  // The correspondence of iterations of two computations. kApart: loops around one or both of them
  // are not around the other one, so that only invariants of these loops can be equal.
  enum class Relation { kNone, kSame, kAligned, kApplied, kLoops, kApart };

  Relation Direct(const hlo::Computation* a, const hlo::Computation* b) const;
  Relation RelationOf(const hlo::Instruction* a, const hlo::Instruction* b) const;
  std::vector<const hlo::Computation*> Around(const hlo::Instruction* value) const;
  // The initial value of an element of a carry that is invariant in its loop; else null.
  hlo::Instruction* Before(const hlo::Instruction* value) const;
  // The value of another manual region, before the loops around, that this region reads; else null.
  hlo::Instruction* FromOtherRegion(const hlo::Instruction* value) const;
  bool IsElement(const hlo::Instruction* value) const;
  // Each returns whether the pair is equal provided that the pairs are that it adds to `work_`.
  bool Step(hlo::Instruction* a, hlo::Instruction* b);
  bool Elements(hlo::Instruction* a, hlo::Instruction* b);
  bool Operations(hlo::Instruction* a, hlo::Instruction* b);
  bool AcrossLoops(hlo::Instruction* a, hlo::Instruction* b, bool& equal);
  bool Invariants(hlo::Instruction* a, hlo::Instruction* b, bool& equal);
  bool Roots(hlo::Computation* a, hlo::Computation* b, int64_t i, int64_t j);
  void Align(const hlo::Computation* a, const hlo::Computation* b, Relation relation);
  bool Want(hlo::Instruction* a, hlo::Instruction* b);
  bool Refuse(std::string why);

  const Callers& callers_;
  hlo::ModuleLoops& loops_;
  const LoopPair* pair_;
  std::map<std::pair<const hlo::Computation*, const hlo::Computation*>, Relation> relations_;
  std::set<Values> seen_;  // looked up, never iterated
  std::vector<Values> work_;
  std::string why_;
};

}  // namespace tpusim::remat

#endif  // TPUSIM_WORKLOADS_REMAT_CONGRUENCE_H_
