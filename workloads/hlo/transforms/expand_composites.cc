#include "workloads/hlo/transforms/expand_composites.h"

#include "workloads/hlo/transforms/expand_batch_norm.h"
#include "workloads/hlo/transforms/expand_bitcast_converts.h"
#include "workloads/hlo/transforms/expand_rng.h"
#include "workloads/hlo/transforms/join_async.h"
#include "workloads/hlo/transforms/split_tuple_copies.h"

namespace tpusim::hlo {

void ExpandComposites(Module& module) {
  SplitTupleCopies(module);
  JoinAsyncCompute(module);
  ExpandBatchNorm(module);
  ExpandRng(module);
  ExpandBitcastConverts(module);
}

}  // namespace tpusim::hlo
