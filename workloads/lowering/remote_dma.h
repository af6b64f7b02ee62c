// What an opaque kernel sends to other devices by itself.
//
// A Pallas kernel may start DMAs to other chips. Its cost says how many bytes a device
// sends, not to which device: they are taken as sent to the next partition, as in the rings
// that such kernels are mostly written for, while the kernel runs.
#ifndef TPUSIM_WORKLOADS_LOWERING_REMOTE_DMA_H_
#define TPUSIM_WORKLOADS_LOWERING_REMOTE_DMA_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "configs/config.h"
#include "models/isa/program.h"
#include "workloads/collectives/collective.h"
#include "workloads/hlo/ir/ir.h"

namespace tpusim::lowering {

struct RemoteDma {
  collectives::LoweredCollective lowered;
  Bytes bytes{0};  // that every device sends
};

// None where the instruction sends nothing, or there is no other device. Errors: as
// CustomCostOf.
absl::StatusOr<std::optional<RemoteDma>> RemoteDmaOf(
    const hlo::Instruction& kernel, const configs::Config& config,
    const std::vector<int64_t>& device_of_partition, isa::PodProgram& program);

}  // namespace tpusim::lowering

#endif  // TPUSIM_WORKLOADS_LOWERING_REMOTE_DMA_H_
