// What a value is, behind everything that only gives it on.
//
// Tuples and their elements, copies, optimization barriers, names, sharding constraints and moves
// between memories leave a value as it is. Two instructions that are the same behind them are the
// same value.
#ifndef TPUSIM_WORKLOADS_REMAT_VALUES_H_
#define TPUSIM_WORKLOADS_REMAT_VALUES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "workloads/hlo/ir/ir.h"

namespace tpusim::remat {

// The instruction that computes it. `passed`, if it is not null, gets the barriers on the way.
hlo::Instruction* Behind(hlo::Instruction* value, std::vector<hlo::Instruction*>* passed = nullptr);

// Element of a tuple that an instruction of the same computation puts together; null: none does.
hlo::Instruction* ElementOf(hlo::Instruction* tuple, int64_t index);

// The instruction that runs each computation: of loops, branches and manual regions. Those have one
// each, GiveOwnBodies() sees to that; what is applied to elements is not listed.
using Callers = std::unordered_map<const hlo::Computation*, hlo::Instruction*>;
Callers CallersOf(const hlo::Module& module);

// The computation that an instruction is in once manual regions and branches are taken to be in
// line: the body or condition of a loop, what is applied to elements, or the entry.
const hlo::Computation* HomeOf(const hlo::Computation* computation, const Callers& callers);
// As Behind(), also through the boundaries of manual regions and into branches.
hlo::Instruction* Resolved(hlo::Instruction* value, const Callers& callers);

// One of the values that go through the boundary of a manual region: Shardy's call that makes a
// part of the whole, or the whole of parts.
struct Crossing {
  bool inwards = false;
  hlo::Instruction* value = nullptr;  // on the other side
  std::string sharding, axes;         // how it is divided there
  bool SameDivision(const Crossing& other) const {
    return sharding == other.sharding && axes == other.axes;
  }
};
std::optional<Crossing> CrossingOf(const hlo::Instruction& value);

// A computation with several callers is copied for each of them.
void GiveOwnBodies(hlo::Module& module);

// The element of the loop's carry that a read in its body, or behind it, is of; -1: it is none.
int64_t CarriedElement(const hlo::Instruction& read, const hlo::Computation& body);
int64_t ElementBehind(const hlo::Instruction& read, const hlo::Instruction& loop);

// Whether the body gives the element on as it got it.
bool IsInvariant(const hlo::Instruction& loop, int64_t element);

}  // namespace tpusim::remat

#endif  // TPUSIM_WORKLOADS_REMAT_VALUES_H_
