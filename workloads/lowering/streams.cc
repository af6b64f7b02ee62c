#include "workloads/lowering/streams.h"

#include <algorithm>
#include <map>
#include <vector>

#include "workloads/cost/schedule_graph.h"
#include "workloads/hlo/analysis/async.h"
#include "workloads/hlo/analysis/call_graph.h"
#include "workloads/hlo/analysis/host_transfer.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"

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

// The copies within the chip have these two; those from and to the host come after them.
constexpr size_t kLocalCopyStreams = 2;

// The number of transfers in flight, by stream of each kind.
using InFlight = std::map<isa::StreamKind, std::vector<int32_t>>;

// The larger of both, stream by stream.
void MergeInto(InFlight& to, const InFlight& from) {
  for (const auto& [kind, counts] : from) {
    std::vector<int32_t>& merged = to[kind];
    merged.resize(std::max(merged.size(), counts.size()));
    for (size_t i = 0; i < counts.size(); ++i) merged[i] = std::max(merged[i], counts[i]);
  }
}

isa::StreamKind KindFor(const Instruction& i) {
  if (hlo::HostTransferOf(i)) return isa::StreamKind::kCopy;
  if (hlo::IsAsyncStart(i.opcode()) && hlo::IsOffLoaded(i)) return isa::StreamKind::kSparseCore;
  return isa::StreamKind::kCollective;
}

// There are only so many SparseCores; streams of other kinds are as many as are needed.
isa::StreamId LeastBusy(InFlight& now, isa::StreamKind kind) {
  std::vector<int32_t>& counts = now[kind];
  const size_t reserved = kind == isa::StreamKind::kCopy ? kLocalCopyStreams : 0;
  counts.resize(std::max(counts.size(), reserved));
  const auto first = counts.begin() + static_cast<int64_t>(reserved);
  if (kind != isa::StreamKind::kSparseCore && std::find(first, counts.end(), 0) == counts.end()) {
    counts.push_back(0);
    return {kind, static_cast<int32_t>(counts.size()) - 1};
  }
  return {kind, static_cast<int32_t>(std::min_element(first, counts.end()) - counts.begin())};
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
    now[isa::StreamKind::kSparseCore].resize(
        static_cast<size_t>(std::max<int64_t>(1, sparse_cores)));
    for (const Instruction* i : computation->Order()) {
      if (hlo::IsAsyncDone(i->opcode())) {
        const auto start = streams.find(&hlo::StartOf(*i));
        if (IsLocalCopy(hlo::StartOf(*i))) continue;
        if (start != streams.end()) --now[start->second.kind][start->second.index];
        continue;
      }
      if (hlo::IsControlFlow(i->opcode())) {
        for (const Computation* called : i->called()) MergeInto(at_calls[called], now);
      }
      if (IsLocalCopy(*i)) {
        streams[i] = {isa::StreamKind::kCopy, IsToHbm(*i) ? 1 : 0};
        continue;
      }
      const isa::StreamId stream = LeastBusy(now, KindFor(*i));
      streams[i] = stream;
      if (hlo::IsAsyncStart(i->opcode())) ++now[stream.kind][stream.index];
    }
  }
  return streams;
}

}  // namespace tpusim::lowering
