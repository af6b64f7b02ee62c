// One copy of a constant per use, and back.
//
// JAX makes one zero and uses it everywhere; through it, sharding would flow
// between values that have nothing to do with each other. So every use gets its
// own copy of constants, iotas, what is computed from nothing else, and of
// scalars broadcast to a shape. Copies that got the same sharding become one
// again afterwards.
#ifndef TPUSIM_WORKLOADS_SHARDING_NORMALISED_CONSTANTS_H_
#define TPUSIM_WORKLOADS_SHARDING_NORMALISED_CONSTANTS_H_

#include <unordered_map>
#include <utility>
#include <vector>

#include "workloads/hlo/ir/ir.h"

namespace tpusim::sharding {

// Copies and what they are copies of, operands before users.
using ConstantCopies = std::vector<std::pair<hlo::Instruction*, hlo::Instruction*>>;

// Splits constant expressions of a computation. Large literals stay shared.
void SplitConstants(hlo::Computation* computation, ConstantCopies* copies);

// Joins copies with the same operands for which `same` holds; what is replaced is
// left without users. Rewrites may have removed some of the copies and originals meanwhile.
template <typename Same>
void JoinConstants(const ConstantCopies& copies, Same same) {
  std::unordered_map<const hlo::Instruction*, std::vector<hlo::Instruction*>> kept;
  for (const auto& [copy, original] : copies) {
    if (copy->removed()) continue;
    std::vector<hlo::Instruction*>& list = kept[original];
    if (list.empty() && !original->removed()) list.push_back(original);
    hlo::Instruction* twin = nullptr;
    for (hlo::Instruction* other : list) {
      if (twin == nullptr && other->operands() == copy->operands() && same(*copy, *other)) {
        twin = other;
      }
    }
    if (twin != nullptr) {
      copy->ReplaceAllUsesWith(twin);
    } else {
      list.push_back(copy);
    }
  }
}

}  // namespace tpusim::sharding

#endif  // TPUSIM_WORKLOADS_SHARDING_NORMALISED_CONSTANTS_H_
