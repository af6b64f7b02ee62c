#include "workloads/cost/transfers.h"

#include <fmt/format.h>

#include <variant>

#include "configs/memory.h"
#include "configs/status_macros.h"
#include "models/timing/kernel_timing.h"
#include "models/timing/memory_bytes.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/kernels/view/kernel_view.h"

namespace tpusim::cost {
namespace {

using hlo::Instruction;
using hlo::Opcode;
using hlo::Shape;

isa::Body MoveBody(const Shape& from, const Shape& to, const Shape& moved,
                   const target::Target& target) {
  const isa::MemorySpace source = kernels::SpaceOf(from), destination = kernels::SpaceOf(to);
  const Bytes bytes = target.PaddedSize(moved);
  isa::Body body;
  const bool to_host = destination == isa::MemorySpace::kHost;
  const bool from_host = source == isa::MemorySpace::kHost;
  if (to_host != from_host) {
    body.push_back({isa::HostDma{to_host, bytes}});
  } else if (!to_host) {
    isa::Dma dma;
    dma.from = source;
    dma.to = destination;
    dma.bytes = bytes;
    // Within a memory that has a rate, what is read is written.
    if (source == destination && source != isa::MemorySpace::kVmem) {
      dma.to = isa::MemorySpace::kVmem;
      body.push_back({dma});
      dma.from = isa::MemorySpace::kVmem;
      dma.to = destination;
    }
    body.push_back({dma});
  }
  return body;
}

}  // namespace

absl::StatusOr<isa::Body> TransferOf(const Instruction& i, const target::Target& target) {
  if (i.opcode() == Opcode::kCustomCall) {
    // A placement: where the value is already, nothing moves.
    const Shape &from = i.operand(0)->shape(), &to = i.shape();
    return kernels::SpaceOf(from) == kernels::SpaceOf(to) ? isa::Body{}
                                                          : MoveBody(from, to, to, target);
  }
  if (i.opcode() == Opcode::kCopyStart) {
    const Shape& to = i.shape().IsTuple() ? i.shape().tuple[0] : i.shape();
    return MoveBody(i.operand(0)->shape(), to, to, target);
  }
  const Instruction& inner = hlo::WrappedBy(i);
  switch (inner.opcode()) {
    case Opcode::kCopy:
    case Opcode::kSlice:
    case Opcode::kDynamicSlice:
      return MoveBody(i.operand(0)->shape(), inner.shape(), inner.shape(), target);
    case Opcode::kDynamicUpdateSlice:
      return MoveBody(inner.operand(1)->shape(), inner.shape(), inner.operand(1)->shape(), target);
    default:
      return NoRule(fmt::format("no rule to execute {}: an asynchronous '{}' is not supported",
                                i.Describe(), hlo::OpcodeName(inner.opcode())));
  }
}

Picoseconds TimeOfTransfer(const configs::ChipParams& chip, const isa::Body& transfer) {
  Picoseconds total(0);
  for (const isa::Instruction& step : transfer) {
    if (const auto* dma = std::get_if<isa::Dma>(&step.kind)) {
      const timing::MemoryBytes accessed = timing::AccessedBy(*dma);
      const BytesPerSecond rate =
          accessed.empty() ? configs::HbmRate(chip) : timing::MoveRate(chip, accessed, dma->bytes);
      total += chip.dma.start_latency +
               FromSeconds(static_cast<double>(dma->bytes.value()) / rate.value());
    } else if (const auto* host = std::get_if<isa::HostDma>(&step.kind)) {
      total += chip.host.pcie_latency + FromSeconds(static_cast<double>(host->bytes.value()) /
                                                    chip.host.pcie_bytes_per_second.value());
    }
  }
  return total;
}

}  // namespace tpusim::cost
