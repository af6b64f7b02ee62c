#include "workloads/lowering/streams.h"

#include <algorithm>
#include <vector>

#include "workloads/hlo/analysis/control.h"
#include "workloads/hlo/analysis/host_transfer.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/passes/collectives/async_collectives.h"
#include "workloads/passes/schedule/graph.h"

namespace tpusim::lowering {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

// Copies between the memories of a device, each way in the order in which they start.
bool IsLocalCopy(const Instruction& i) {
  return i.opcode() == Opcode::kCopyStart && i.shape().IsTuple() && !hlo::HostTransferOf(i);
}
bool IsToHbm(const Instruction& copy) {
  return copy.shape().tuple[0].layout.memory_space == hlo::kHbmSpace;
}

// How much is in flight, by stream.
struct InFlight {
  std::vector<int32_t> collectives, sparse_cores;

  // The largest of both, stream by stream.
  void Merge(const InFlight& other) {
    const auto merge = [](std::vector<int32_t>& to, const std::vector<int32_t>& from) {
      to.resize(std::max(to.size(), from.size()));
      for (size_t i = 0; i < from.size(); ++i) to[i] = std::max(to[i], from[i]);
    };
    merge(collectives, other.collectives);
    merge(sparse_cores, other.sparse_cores);
  }
  std::vector<int32_t>& Of(isa::StreamKind kind) {
    return kind == isa::StreamKind::kSparseCore ? sparse_cores : collectives;
  }
};

isa::StreamId LeastBusy(InFlight& now, isa::StreamKind kind) {
  std::vector<int32_t>& counts = now.Of(kind);
  if (kind == isa::StreamKind::kCollective &&
      std::find(counts.begin(), counts.end(), 0) == counts.end()) {
    counts.push_back(0);
  }
  return {kind,
          static_cast<int32_t>(std::min_element(counts.begin(), counts.end()) - counts.begin())};
}

}  // namespace

std::unordered_map<const Instruction*, isa::StreamId> AssignStreams(const hlo::Module& module,
                                                                    int64_t sparse_cores) {
  std::unordered_map<const Instruction*, isa::StreamId> streams;
  std::unordered_map<const Computation*, InFlight> at_calls;
  const std::vector<Computation*> computations = hlo::ControlComputations(module);
  // Callers come before what they call.
  for (const Computation* computation : computations) {
    InFlight now = at_calls[computation];
    now.sparse_cores.resize(static_cast<size_t>(std::max<int64_t>(1, sparse_cores)));
    for (const Instruction* i : computation->Order()) {
      if (hlo::IsAsyncDone(i->opcode())) {
        const auto start = streams.find(&passes::StartOf(*i));
        if (IsLocalCopy(passes::StartOf(*i))) continue;
        if (start != streams.end()) --now.Of(start->second.kind)[start->second.index];
        continue;
      }
      if (hlo::IsControlFlow(i->opcode())) {
        for (const Computation* called : i->called()) at_calls[called].Merge(now);
      }
      const bool starts = hlo::IsAsyncStart(i->opcode());
      if (IsLocalCopy(*i)) {
        streams[i] = {isa::StreamKind::kCopy, IsToHbm(*i) ? 1 : 0};
        continue;
      }
      const isa::StreamId stream =
          LeastBusy(now, starts && hlo::IsOffLoaded(*i) ? isa::StreamKind::kSparseCore
                                                        : isa::StreamKind::kCollective);
      streams[i] = stream;
      if (starts) ++now.Of(stream.kind)[stream.index];
    }
  }
  return streams;
}

}  // namespace tpusim::lowering
