#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

#include "configs/status_macros.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/ir/walk.h"
#include "workloads/hlo/transforms/plain_operations.h"
#include "workloads/passes/compiled/compiled.h"
#include "workloads/passes/compiled/order_edit.h"
#include "workloads/passes/compiled/reasons.h"
#include "workloads/passes/compiled/start_of.h"

namespace tpusim::passes {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

// Attributes of what moves between slices: megascale is the runtime of the data-center network.
constexpr char kHandler[] = "_xla_host_transfer_handler_name";
constexpr std::string_view kMegascale = "xla_megascale_runtime";
constexpr char kRendezvous[] = "_xla_host_transfer_rendezvous";
constexpr char kTransferType[] = "_xla_megascale_transfer_type";
constexpr char kReduceOperation[] = "_xla_megascale_reduce_operation";

bool IsMegascale(const Instruction& i, Opcode opcode) {
  return i.opcode() == opcode && hlo::FrontendAttribute(i, kHandler) == kMegascale;
}

// Devices of one slice, of all of them.
struct Slices {
  int64_t devices = 1;  // of one
  int64_t count = 1;
};

// Repeats the groups of the first slice for the others. Groups of other devices stay, and false.
bool RepeatGroups(Instruction* collective, const Slices& slices) {
  const auto groups = hlo::ReplicaGroups(*collective, slices.devices);
  if (!groups.ok()) return false;
  std::vector<std::vector<int64_t>> all;
  for (int64_t slice = 0; slice < slices.count; ++slice) {
    for (std::vector<int64_t> group : *groups) {
      for (int64_t& device : group) device += slice * slices.devices;
      all.push_back(std::move(group));
    }
  }
  hlo::SetReplicaGroups(collective, all);
  return true;
}

// Repeats the pairs of the first slice for the others. Pairs of other devices stay, and false.
bool RepeatPairs(Instruction* permute, const Slices& slices) {
  const std::vector<hlo::SourceTargetPair> first = hlo::SourceTargetPairs(*permute);
  std::vector<hlo::SourceTargetPair> all;
  for (int64_t slice = 0; slice < slices.count; ++slice) {
    for (const auto& [source, target] : first) {
      if (source >= slices.devices || target >= slices.devices) return false;
      all.emplace_back(source + slice * slices.devices, target + slice * slices.devices);
    }
  }
  hlo::SetSourceTargetPairs(permute, all);
  return true;
}

// The receive whose data the send's other halves become; null: there is none.
Instruction* ReceiveOf(const Instruction& send) {
  const auto key = hlo::FrontendAttribute(send, kRendezvous);
  for (Instruction* i : send.parent()->instructions()) {
    if (IsMegascale(*i, Opcode::kRecv) && hlo::FrontendAttribute(*i, kRendezvous) == key) return i;
  }
  return nullptr;
}

Instruction* OnlyUser(const Instruction& i, Opcode opcode) {
  return i.users().size() == 1 && i.users()[0]->opcode() == opcode ? i.users()[0] : nullptr;
}

// A send and a receive under one key are one collective among the devices that have the same place
// in every slice.
absl::Status JoinTransfer(Instruction* send, const Slices& slices, const PassContext& context,
                          OrderEdit& order) {
  Computation* computation = send->parent();
  Instruction* recv = ReceiveOf(*send);
  Instruction* send_done = OnlyUser(*send, Opcode::kSendDone);
  Instruction* recv_done = recv == nullptr ? nullptr : OnlyUser(*recv, Opcode::kRecvDone);
  const auto type = hlo::FrontendAttribute(*send, kTransferType);
  const auto operation = hlo::FrontendAttribute(*send, kReduceOperation);
  const bool sums = type == "ALL_REDUCE" && operation == "SUM";
  if (recv_done == nullptr || send_done == nullptr || !sums ||
      !hlo::SameDims(recv->shape().tuple[0], send->operand(0)->shape())) {
    return NoRule(fmt::format("no rule for {}: a transfer between slices of type {} {}",
                              send->Describe(), type.value_or("?"), operation.value_or("")));
  }
  Instruction* data = send->operand(0);
  const std::string name = hlo::FrontendAttribute(*send, kRendezvous).value_or("all-reduce");
  Instruction* reduce = computation->Add(Opcode::kAllReduce, data->shape(), {data}, name);
  reduce->set_called({hlo::AddReducer(
      *computation->parent(), Opcode::kAdd, data->shape().element_type, "sum")});
  std::vector<std::vector<int64_t>> groups(static_cast<size_t>(slices.devices));
  for (int64_t device = 0; device < slices.devices * slices.count; ++device) {
    groups[device % slices.devices].push_back(device);
  }
  hlo::SetReplicaGroups(reduce, groups);
  reduce->mutable_attrs().set_channel_id(send->attrs().channel_id());
  reduce->mutable_attrs().set_use_global_device_ids(true);
  *reduce->mutable_attrs().mutable_metadata() = send->attrs().metadata();

  Instruction* start = StartOf(*reduce, {data}, recv->shape().tuple[0], computation);
  computation->Remove(reduce);
  Instruction* done = computation->Add(Opcode::kAsyncDone, recv->shape().tuple[0], {start},
                                       start->name() + "-done", recv_done);
  Instruction* token = computation->Add(Opcode::kAfterAll, hlo::MakeTokenShape(), {});
  Instruction* result =
      computation->Add(Opcode::kTuple, recv_done->shape(), {done, token}, recv_done->name());
  order.Insert(send, start);
  order.Insert(recv_done, done);
  order.Insert(recv_done, token);
  order.Insert(recv_done, result);
  send->MoveControlTo(start, start);
  recv->MoveControlTo(start, start);
  send_done->MoveControlTo(done, done);
  recv_done->MoveControlTo(done, done);
  recv_done->ReplaceAllUsesWith(result);
  if (!send_done->users().empty()) {
    Instruction* sent = computation->Add(Opcode::kAfterAll, hlo::MakeTokenShape(), {});
    order.Insert(send_done, sent);
    send_done->ReplaceAllUsesWith(sent);
  }
  for (Instruction* gone : {send_done, recv_done, send, recv}) computation->Remove(gone);
  context.records.Add(reasons::kBetweenSlices, start->name());
  return absl::OkStatus();
}

absl::StatusOr<bool> Edit(Computation* computation, const Slices& slices,
                          const PassContext& context, OrderEdit& order) {
  bool changed = false;
  for (Instruction* i : hlo::Walk(computation->PostOrder())) {
    if (!IsMegascale(*i, Opcode::kSend)) continue;
    RETURN_IF_ERROR(JoinTransfer(i, slices, context, order));
    changed = true;
  }
  return changed;
}

}  // namespace

absl::StatusOr<bool> JoinSlices(hlo::Module& module, const PassContext& context) {
  const int64_t count = context.target.config().topology.slices();
  const int64_t partitions = context.stated->partitions;
  if (count < 2 || partitions % count != 0) return false;
  const Slices slices{partitions / count, count};
  bool changed = false;
  for (Computation* computation : module.computations()) {
    for (Instruction* i : computation->instructions()) {
      if (!hlo::IsCollective(i->opcode())) continue;
      const bool permutes = !hlo::SourceTargetPairs(*i).empty();
      if (!(permutes ? RepeatPairs(i, slices) : RepeatGroups(i, slices))) continue;
      context.records.Add(reasons::kInEverySlice, i->name());
      changed = true;
    }
  }
  ASSIGN_OR_RETURN(const bool joined,
                   EditOrdered(module, [&](Computation* computation, OrderEdit& order) {
                     return Edit(computation, slices, context, order);
                   }));
  return changed || joined;
}

}  // namespace tpusim::passes
