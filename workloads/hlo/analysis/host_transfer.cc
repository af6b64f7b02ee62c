#include "workloads/hlo/analysis/host_transfer.h"

#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"

namespace tpusim::hlo {

std::optional<HostTransfer> HostTransferOf(const Instruction& i) {
  const auto between = [](const Shape& from, const Shape& to) -> std::optional<HostTransfer> {
    if (OnHost(from) == OnHost(to)) return std::nullopt;
    return OnHost(to) ? HostTransfer::kToHost : HostTransfer::kFromHost;
  };
  switch (i.opcode()) {
    case Opcode::kCustomCall:
      if (!PlacementOf(i)) return std::nullopt;
      return between(i.operand(0)->shape(), i.shape());
    case Opcode::kCopy:
    case Opcode::kSlice:
    case Opcode::kDynamicSlice:
      return between(i.operand(0)->shape(), i.shape());
    case Opcode::kDynamicUpdateSlice:
      return between(i.operand(1)->shape(), i.shape());
    case Opcode::kCopyStart:
      return between(i.operand(0)->shape(), i.shape().IsTuple() ? i.shape().tuple[0] : i.shape());
    case Opcode::kAsyncStart:
      return HostTransferOf(WrappedBy(i));
    default:
      return std::nullopt;
  }
}

}  // namespace tpusim::hlo
