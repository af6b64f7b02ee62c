// Checks the participants of collectives, once the number of partitions is known, which the module
// itself does not state.
#include <algorithm>

#include "configs/status_macros.h"
#include "fmt/format.h"
#include "workloads/hlo/analysis/verify.h"
#include "workloads/hlo/ir/attributes.h"

namespace tpusim::hlo {
namespace {

bool IsPermute(Opcode opcode) {
  return opcode == Opcode::kCollectivePermute || opcode == Opcode::kCollectivePermuteStart;
}

absl::Status CheckPairs(const Instruction& permute, int64_t num_partitions) {
  std::vector<bool> sends(static_cast<size_t>(num_partitions));
  std::vector<bool> receives(static_cast<size_t>(num_partitions));
  for (const auto& [source, target] : SourceTargetPairs(permute)) {
    for (const int64_t partition : {source, target}) {
      if (partition >= 0 && partition < num_partitions) continue;
      return UserError(
          fmt::format("the pair {{{},{}}} names partition {}, but the program has {} (0 to {})",
                      source, target, partition, num_partitions, num_partitions - 1));
    }
    // The in-place form sends several parts at once.
    if (permute.attrs().dynamic_slice_sizes_size() > 0) continue;
    if (sends[source] || receives[target]) {
      return UserError(fmt::format("partition {} is {} of more than one pair",
                                   sends[source] ? source : target,
                                   sends[source] ? "the source" : "the target"));
    }
    sends[source] = receives[target] = true;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status VerifyCollectives(const Module& module, int64_t num_partitions) {
  for (const Computation* computation : module.computations()) {
    for (const Instruction* i : computation->instructions()) {
      if (!IsCollective(i->opcode()) || IsAsyncDone(i->opcode())) continue;
      if (!IsPermute(i->opcode())) {
        RETURN_IF_ERROR(ReplicaGroups(*i, num_partitions).status());
        continue;
      }
      const absl::Status status = CheckPairs(*i, num_partitions);
      if (!status.ok()) {
        return absl::Status(status.code(), fmt::format("source-target pairs of {}: {}",
                                                       i->Describe(), Message(status)));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace tpusim::hlo
