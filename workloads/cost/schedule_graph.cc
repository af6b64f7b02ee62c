#include "workloads/cost/schedule_graph.h"

#include <algorithm>
#include <optional>

#include "configs/status_macros.h"
#include "workloads/hlo/analysis/async.h"
#include "workloads/hlo/analysis/host_transfer.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"

namespace tpusim::cost {

using hlo::Instruction;
using hlo::Opcode;

TransferLimits LimitsOf(const target::Target& target) {
  const configs::ChipParams& chip = target.chip();
  const configs::Policy& policy = target.policy();
  TransferLimits limits;
  limits[kPermute] = static_cast<int>(policy.permutes_in_flight);
  // A program may come with asynchronous gathers where none would be made.
  limits[kGather] = std::max(1, static_cast<int>(policy.gathers_in_flight));
  limits[kOffLoaded] = std::max(1, static_cast<int>(chip.sparse_core.count / chip.devices));
  limits[kCopy] = static_cast<int>(policy.copies_in_flight);
  limits[kToHost] = limits[kFromHost] = static_cast<int>(policy.host_copies_in_flight);
  return limits;
}

TransferKind KindOf(const Instruction& start) {
  if (hlo::IsOffLoaded(start)) return kOffLoaded;
  if (start.opcode() == Opcode::kCollectivePermuteStart) return kPermute;
  if (hlo::IsCollective(start.opcode())) return kGather;
  const std::optional<hlo::HostTransfer> host = hlo::HostTransferOf(start);
  if (!host) return kCopy;
  return *host == hlo::HostTransfer::kToHost ? kToHost : kFromHost;
}

bool CarriesGathers(const Instruction& i) {
  return i.opcode() == Opcode::kDot || i.opcode() == Opcode::kConvolution ||
         (i.opcode() == Opcode::kFusion && i.attrs().fusion_kind() == "kOutput");
}

absl::Status SetRole(Instruction& i, CostModel& cost, ScheduleNode& node) {
  node.instruction = &i;
  node.carries_gathers = CarriesGathers(i);
  node.of_constants = i.opcode() != hlo::Opcode::kParameter && !hlo::IsControlFlow(i.opcode()) &&
                      std::ranges::all_of(i.operands(), [](const Instruction* o) {
                        return o->opcode() == hlo::Opcode::kConstant;
                      });
  if (hlo::IsAsyncStart(i.opcode())) {
    node.role = ScheduleNode::Role::kStart;
    node.kind = KindOf(i);
    ASSIGN_OR_RETURN(node.transfer, cost.TransferOf(i));
  } else if (hlo::IsAsyncDone(i.opcode())) {
    node.role = ScheduleNode::Role::kDone;
    node.kind = KindOf(hlo::StartOf(i));
  }
  return absl::OkStatus();
}

std::vector<bool> WholeGathers(const ScheduleGraph& graph, const ScheduleOrder& order) {
  std::vector<bool> whole(graph.nodes.size());
  std::vector<int> products_before(graph.nodes.size());
  int products = 0;
  for (const int n : order) {
    const ScheduleNode& node = graph.nodes[n];
    if (node.carries_gathers) ++products;
    if (node.role == ScheduleNode::Role::kStart) products_before[n] = products;
    if (node.role != ScheduleNode::Role::kDone || node.kind != kGather) continue;
    whole[node.start] = products_before[node.start] == products;
  }
  return whole;
}

}  // namespace tpusim::cost
