#include "workloads/lowering/collective_library.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "configs/status_macros.h"
#include "workloads/hlo/ir/annotations.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/kernels/opaque/custom_cost.h"
#include "workloads/lowering/carried.h"

namespace tpusim::lowering {
namespace {

isa::SharedBody WithFlagsMoved(const isa::SharedBody& body, int32_t by) {
  isa::Body moved = *body;
  for (isa::Instruction& instruction : moved) {
    if (auto* rdma = std::get_if<isa::Rdma>(&instruction.kind)) {
      if (rdma->arrival_flag >= 0) rdma->arrival_flag += by;
      if (rdma->sent_flag >= 0) rdma->sent_flag += by;
    } else if (auto* wait = std::get_if<isa::Wait>(&instruction.kind)) {
      wait->flag += by;
    } else if (auto* signal = std::get_if<isa::Signal>(&instruction.kind)) {
      signal->flag += by;
    } else if (auto* loop = std::get_if<isa::Loop>(&instruction.kind)) {
      loop->body = WithFlagsMoved(loop->body, by);
    }
  }
  return std::make_shared<const isa::Body>(std::move(moved));
}

}  // namespace

std::vector<std::string> CollectiveLibrary::Assumptions() const {
  std::vector<std::string> all;
  for (const auto& [key, entry] : lowered_) {
    for (const std::string& sentence : collectives::AssumptionsOf(*entry.decision)) {
      if (std::find(all.begin(), all.end(), sentence) == all.end()) all.push_back(sentence);
    }
  }
  return all;
}

absl::StatusOr<collectives::LoweredCollective> CollectiveLibrary::Lower(
    const hlo::Instruction& collective, isa::PodProgram& program) {
  ASSIGN_OR_RETURN(const cost::CollectiveDecisions::KeyedDecision* decided,
                   decisions_.Find(collective));
  collectives::CollectiveRequest request = decided->request;
  request.carried = IsCarried(collective);
  const auto [it, fresh] =
      lowered_.try_emplace((request.carried ? "carried " : "") + decided->key);
  KnownCollective& entry = it->second;
  collectives::LoweredCollective result;
  if (fresh) {
    entry.decision = decided->decision;
    entry.first_flag = program.flags;
    entry.lowered =
        collectives::LowerCollective(decisions_.config(), request, *decided->decision, program);
    entry.flags = program.flags - entry.first_flag;
    result = entry.lowered;
  } else {
    result = entry.lowered;
    const int32_t by = program.flags - entry.first_flag;
    program.flags += entry.flags;
    for (isa::SharedBody& body : result.bodies) body = WithFlagsMoved(body, by);
  }
  result.info.axes = cost::AxesOf(hlo::WrappedBy(collective));
  const auto site = hlo::annotations::kReshardSite.Of(hlo::WrappedBy(collective));
  result.info.reshard_site = static_cast<int32_t>(site.value_or(-1));
  return result;
}

absl::StatusOr<std::optional<CollectiveLibrary::RemoteDma>> CollectiveLibrary::LowerRemoteDma(
    const hlo::Instruction& kernel, isa::PodProgram& program) const {
  const std::vector<int64_t>& devices = device_of_partition();
  if (kernel.opcode() != hlo::Opcode::kCustomCall || kernels::HasKernelOfItsOwn(kernel) ||
      devices.size() < 2) {
    return std::nullopt;
  }
  ASSIGN_OR_RETURN(const kernels::CustomCost cost, kernels::CustomCostOf(kernel));
  if (cost.remote == Bytes(0)) return std::nullopt;
  collectives::CollectiveRequest request;
  request.kind = collectives::CollectiveKind::kPermute;
  request.name = kernel.name();
  request.operand_bytes = cost.remote;
  // What it takes from HBM at both ends is part of the bytes that the kernel accesses.
  request.space = isa::MemorySpace::kVmem;
  for (size_t p = 0; p < devices.size(); ++p) {
    request.pairs.emplace_back(devices[p], devices[(p + 1) % devices.size()]);
  }
  ASSIGN_OR_RETURN(const auto decision,
                   collectives::DecideCollective(decisions_.config(), request));
  return RemoteDma{collectives::LowerCollective(decisions_.config(), request, *decision, program),
                   cost.remote};
}

}  // namespace tpusim::lowering
