// Rounds and passes of a bitonic sort.
#ifndef TPUSIM_WORKLOADS_KERNELS_SORT_COST_H_
#define TPUSIM_WORKLOADS_KERNELS_SORT_COST_H_

#include <cstdint>

namespace tpusim::kernels {

// Compare-exchange rounds over n keys.
int64_t SortRounds(int64_t n);

// How often n keys have to pass through VMEM that holds `in_vmem` of them.
int64_t StreamedPasses(int64_t n, int64_t in_vmem);

}  // namespace tpusim::kernels

#endif  // TPUSIM_WORKLOADS_KERNELS_SORT_COST_H_
