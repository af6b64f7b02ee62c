#include "workloads/lowering/remote_dma.h"

#include "configs/status_macros.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/kernels/custom_cost.h"

namespace tpusim::lowering {

absl::StatusOr<std::optional<RemoteDma>> RemoteDmaOf(
    const hlo::Instruction& kernel, const configs::Config& config,
    const std::vector<int64_t>& device_of_partition, isa::PodProgram& program) {
  if (kernel.opcode() != hlo::Opcode::kCustomCall || kernels::HasKernelOfItsOwn(kernel) ||
      device_of_partition.size() < 2) {
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
  for (size_t p = 0; p < device_of_partition.size(); ++p) {
    request.pairs.emplace_back(device_of_partition[p],
                               device_of_partition[(p + 1) % device_of_partition.size()]);
  }
  ASSIGN_OR_RETURN(const auto decision, collectives::DecideCollective(config, request));
  return RemoteDma{collectives::LowerCollective(config, request, *decision, program), cost.remote};
}

}  // namespace tpusim::lowering
