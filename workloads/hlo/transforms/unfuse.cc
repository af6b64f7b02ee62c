#include "workloads/hlo/transforms/unfuse.h"

#include "workloads/hlo/transforms/forward_tuples.h"

namespace tpusim::hlo {

int64_t Unfuse(Module& module) {
  const int64_t count =
      module.InlineCalls([](const Instruction& call) { return call.opcode() == Opcode::kFusion; });
  if (count > 0) ForwardAllTuples(module);
  return count;
}

}  // namespace tpusim::hlo
