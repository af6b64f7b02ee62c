// What the annotations of a module and of its warnings have in common.
#ifndef TPUSIM_WORKLOADS_PASSES_ANNOTATE_WRITTEN_H_
#define TPUSIM_WORKLOADS_PASSES_ANNOTATE_WRITTEN_H_

#include <string>
#include <string_view>
#include <vector>

#include "workloads/hlo/ir/ir.h"
#include "workloads/passes/pipeline/pass.h"

namespace tpusim::passes {

// All frontend attributes of a module: equal before and after what has written nothing new.
std::vector<std::string> WrittenAttributes(const hlo::Module& module);

// Of all instructions of an opcode.
std::vector<std::string> NamesOf(const hlo::Module& module, hlo::Opcode opcode);

// Warns that an option, such as "--branch cond=1", fits none of `names`; `what` is what these
// are, one and several: "no conditional", "conditionals".
void WarnOfNoEffect(const Records& records, const std::string& option,
                    const std::vector<std::string>& names, std::string_view none,
                    std::string_view several);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_ANNOTATE_WRITTEN_H_
