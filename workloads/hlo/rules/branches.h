// Reads and writes which branch of a conditional the user states to run.
//
// It is an attribute of the conditional, tpusim.branch. A stated branch is the only one that runs:
// everything that asks what runs, how long or how often, asks here; where nothing is stated,
// analysis/branch_choice.h evaluates the selector. Memory is another matter: a program has room for
// every branch that it may take.
#ifndef TPUSIM_WORKLOADS_HLO_RULES_BRANCHES_H_
#define TPUSIM_WORKLOADS_HLO_RULES_BRANCHES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "workloads/hlo/ir/ir.h"

namespace tpusim::hlo {

// Whether the text is the number of a branch, or "longest".
bool IsBranchOf(const Instruction& conditional, std::string_view branch);
// Writes a branch onto the conditional; returns whether that changed anything.
bool StateBranch(Instruction* conditional, const std::string& branch);
// The text that is written, whether or not it is a branch.
std::optional<std::string> WrittenBranch(const Instruction& conditional);

// The number that is written; nullopt: none is, "longest", or one that no branch has.
std::optional<int32_t> StatedBranch(const Instruction& conditional);

// The computations that control flow may run: `called`, without branches that are stated not to
// be taken.
std::vector<Computation*> RunBy(const Instruction& control_flow);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_RULES_BRANCHES_H_
