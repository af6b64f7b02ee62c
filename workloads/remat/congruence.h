// Whether two instructions compute the same value.
//
// They do if they are the same behind what only gives values on (values.h), or if they are equal
// operations on equal values. Elements of loops are equal if they begin equal and each iteration
// makes equal ones of equal ones; so are those of branches and of manual regions whose operands are
// equal. Between a forward loop and its backward loop (loop_pair.h), in an iteration of one and the
// iteration of the other that it belongs to:
//
//   * a slot that the backward body reads is what the forward body has written there
//   * indices are equal where numbers of iterations say so
//   * what a loop gives on as it got it is what it was before the loop
//
// Nothing else is: not what metadata say, not values that a random number generator with a state of
// its own draws.
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

// Where a proof ended.
struct Difference {
  std::string why;
  int64_t proven = 0;  // pairs of values that were seen to be equal before
};

class Congruence {
 public:
  // `pair` is null where the values are in one computation. All of them must outlive this.
  Congruence(const Callers& callers, hlo::ModuleLoops& loops, const LoopPair* pair = nullptr)
      : callers_(callers), loops_(loops), pair_(pair) {}

  // Why `later`, in the backward loop if there is one, is not seen to be `earlier`; nullopt: it is.
  std::optional<Difference> Find(hlo::Instruction* later, hlo::Instruction* earlier);

 private:
  using Values = std::pair<hlo::Instruction*, hlo::Instruction*>;
  // How iterations of two computations belong together. Apart: loops around one or both of them are
  // not those of the other one, so that only what these loops do not change can be equal.
  enum class Relation { kNone, kSame, kAligned, kApplied, kLoops, kApart };

  Relation Direct(const hlo::Computation* a, const hlo::Computation* b) const;
  Relation RelationOf(const hlo::Instruction* a, const hlo::Instruction* b) const;
  std::vector<const hlo::Computation*> Around(const hlo::Instruction* value) const;
  // What an element of a loop's carry was before the loop, which gives it on as it got it.
  hlo::Instruction* Before(const hlo::Instruction* value) const;
  // What another manual region has made, before the loops around, and this one takes as it is.
  hlo::Instruction* FromOtherRegion(const hlo::Instruction* value) const;
  bool IsElement(const hlo::Instruction* value) const;
  // Each: whether the pair is equal if those are that it adds to the work.
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
