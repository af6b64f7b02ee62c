// The work of the TPU compiler's kernels around the transfers of an all-reduce or a reduce-scatter.
//
// An all-gather is remote DMAs from HBM to HBM. A sum is a kernel of one core that adds in VMEM,
// and its operand does not fit: it goes span by span, equal parts of which one is done before the
// next begins. In VMEM are all shards of a span and a few more, into which neighbours write. So
// with n shards and k more a span has at most
//
//   share of the scoped VMEM * n / (n + k)
//
// bytes. Every span pays for barriers (a neighbour may only write when the buffers are free), for
// copies between HBM and VMEM that nothing hides, and for a hop at the end of each phase. Within a
// phase shards are sent in pieces: while one piece is added and waits to be passed on the next ones
// travel, which hides the additions and the hops of all other steps.
//
// The kernels are rows beside the choices of algorithms (configs/compilers/collectives), each with
// the code of the TPU compiler that it was read from: `--xla_jf_dump_llo_text` prints it.
#ifndef TPUSIM_WORKLOADS_COLLECTIVES_SUM_KERNEL_H_
#define TPUSIM_WORKLOADS_COLLECTIVES_SUM_KERNEL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "configs/config.h"
#include "workloads/collectives/candidates.h"
#include "workloads/collectives/collective.h"

namespace tpusim::collectives {

// The part of a span that is copied between HBM and VMEM: all of it, a shard of its first phase, a
// quarter of that (a kernel sends shards in four pieces), or the part of the result.
enum class SpanPart { kSpan, kShard, kPiece, kResult };
std::vector<std::string> SpanPartNames();  // of all, in order

struct SumKernel {
  std::string name;
  double vmem_share = 0;     // of the scoped VMEM
  int64_t spare_shards = 0;  // k
  int64_t together = 1;      // if there are several spans, they are a multiple of this
  // Per span. A barrier with neighbours takes a hop; one of the slice goes to its first chip and
  // back.
  double neighbour_barriers = 0, slice_barriers = 0;
  double phases = 0;                    // per span, each of which ends with a hop
  std::vector<SpanPart> reads, writes;  // copies per span that nothing hides
};

// Makes the candidate run as that kernel, and sets the closed form of it.
void UseKernel(const configs::Config& config, const CollectiveRequest& request,
               const SumKernel& kernel, Algorithm& candidate);

}  // namespace tpusim::collectives

#endif  // TPUSIM_WORKLOADS_COLLECTIVES_SUM_KERNEL_H_
