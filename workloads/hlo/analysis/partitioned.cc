#include "workloads/hlo/analysis/partitioned.h"

#include <algorithm>
#include <string_view>
#include <vector>

namespace tpusim::hlo {
namespace {

bool MarksShardings(const Instruction* i) {
  if (i->opcode() != Opcode::kCustomCall) return false;
  const std::string_view target = i->attrs().custom_call_target();
  return target == "Sharding" || target.starts_with("SPMD") || target.starts_with("xla.sdy.");
}

}  // namespace

bool IsPartitioned(const Module& module) {
  if (module.entry() == nullptr || !module.entry()->name().ends_with("_spmd")) return false;
  return std::ranges::none_of(module.computations(), [](const Computation* computation) {
    const std::vector<Instruction*> all = computation->instructions();
    return std::ranges::any_of(all, MarksShardings);
  });
}

}  // namespace tpusim::hlo
