// Batch normalisation as plain operations, which is what every backend of XLA makes of it.
#ifndef TPUSIM_WORKLOADS_HLO_TRANSFORMS_EXPAND_BATCH_NORM_H_
#define TPUSIM_WORKLOADS_HLO_TRANSFORMS_EXPAND_BATCH_NORM_H_

#include "workloads/hlo/ir/ir.h"

namespace tpusim::hlo {

// Replaces batch-norm-training, -inference and -grad. Means and variances are over all dimensions
// but the feature's, the variance as mean of squares less square of the mean.
void ExpandBatchNorm(Module& module);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_TRANSFORMS_EXPAND_BATCH_NORM_H_
