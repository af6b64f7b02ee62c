// All-gathers whose steps kernels carry.
//
// Where no SparseCore runs it, the TPU compiler has an asynchronous all-gather executed by the
// TensorCore itself, as a ring in both directions:
//
//   start      a copy of the own shard to its place in the result and, at the same time, a barrier
//              with the neighbours; then the first shards are sent
//   products   at the begin of every step of their grids: if both neighbours' shards have arrived,
//              the next ones are sent (isa::Poll)
//   done       what is left of the ring, without a break
//
// Between two products no shard is forwarded, and within one no more than one each way per step
// of its grid. So a gather takes longer beside kernels of few long steps than alone, the more so
// the longer the ring. Source: the bundles that the compiler writes for v6e 2x4 and 16x16 (libtpu
// 0.0.42, --xla_jf_dump_llo_text=true; its names for the fusions: AsyncCollectiveStart, -Done,
// async_collective_fusion).
#ifndef TPUSIM_WORKLOADS_LOWERING_CARRIED_H_
#define TPUSIM_WORKLOADS_LOWERING_CARRIED_H_

#include "configs/chip.h"
#include "models/isa/program.h"
#include "workloads/hlo/ir/ir.h"

namespace tpusim::lowering {

// Whether `start` begins a collective that kernels carry.
bool IsCarried(const hlo::Instruction& start);

// Returns what the main stream does before the first shards are sent.
isa::Body BeginOfCarried(const hlo::Instruction& start, const configs::ChipParams& chip);

// Whether the kernel of `i` carries what is in flight: fusions with a product do, kernels that the
// compiler only calls do not.
bool Carries(const hlo::Instruction& i);

}  // namespace tpusim::lowering

#endif  // TPUSIM_WORKLOADS_LOWERING_CARRIED_H_
