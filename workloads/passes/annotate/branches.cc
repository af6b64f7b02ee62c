#include "workloads/hlo/rules/branches.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <vector>

#include "configs/status_macros.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/passes/annotate/annotate.h"
#include "workloads/passes/annotate/written.h"
#include "workloads/passes/pipeline/reasons.h"

namespace tpusim::passes {

absl::StatusOr<bool> StateBranches(hlo::Module& module, const PassContext& context) {
  const auto& stated = context.stated->branches;
  std::vector<bool> used(stated.size(), false);
  bool changed = false;
  for (hlo::Computation* computation : module.computations()) {
    for (hlo::Instruction* i : computation->instructions()) {
      if (i->opcode() != hlo::Opcode::kConditional) continue;
      // The first that matches wins.
      bool done = false;
      for (size_t n = 0; n < stated.size(); ++n) {
        const auto& [pattern, choice] = stated[n];
        if (fnmatch(pattern.c_str(), i->name().c_str(), 0) != 0) continue;
        used[n] = true;
        if (std::exchange(done, true)) continue;
        if (!hlo::IsBranchOf(*i, choice)) {
          return UserError(
              fmt::format("--branch {}={}: {} has branches 0 to {}; give one of them or 'longest'",
                          pattern, choice, i->Describe(), i->called().size() - 1));
        }
        context.records.Add(reasons::kBranchStated, i->name(), {{"branch", choice}});
        changed |= hlo::StateBranch(i, choice);
      }
      if (const auto written = hlo::WrittenBranch(*i); written && !hlo::IsBranchOf(*i, *written)) {
        return UserError(
            fmt::format("{} is said to take branch '{}' and has branches 0 to {}; give one of them "
                        "or 'longest' (--branch {}=K)",
                        i->Describe(), *written, i->called().size() - 1, i->name()));
      }
    }
  }
  for (size_t n = 0; n < stated.size(); ++n) {
    if (used[n]) continue;
    WarnOfNoEffect(context.records,
                   fmt::format("--branch {}={}", stated[n].first, stated[n].second),
                   NamesOf(module, hlo::Opcode::kConditional), "no conditional", "conditionals");
  }
  return changed;
}

}  // namespace tpusim::passes
