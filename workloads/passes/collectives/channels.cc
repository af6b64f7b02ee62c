#include "workloads/passes/collectives/channels.h"

#include <algorithm>

namespace tpusim::passes {

int64_t FirstFreeChannel(const hlo::Module& module) {
  int64_t last = 0;
  for (const hlo::Computation* computation : module.computations()) {
    for (const hlo::Instruction* i : computation->instructions()) {
      last = std::max<int64_t>(last, i->attrs().channel_id());
    }
  }
  return last + 1;
}

}  // namespace tpusim::passes
