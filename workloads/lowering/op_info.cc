#include "workloads/lowering/op_info.h"

#include <string>

#include "configs/status_macros.h"
#include "workloads/cost/schedule_graph.h"
#include "workloads/hlo/analysis/async.h"
#include "workloads/hlo/analysis/host_transfer.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/rules/cost.h"
#include "workloads/kernels/opaque/custom_cost.h"
#include "workloads/lowering/carried.h"

namespace tpusim::lowering {
namespace {

using hlo::Instruction;
using hlo::Opcode;

// Returns the category of a copy beside the main stream.
std::string CategoryOf(hlo::HostTransfer transfer) {
  return transfer == hlo::HostTransfer::kToHost ? "copy to host" : "copy from host";
}

// XProf's hlo_category; of the host's memory: copies that the main stream executes, and waits.
std::string CategoryOf(const Instruction& i) {
  if (hlo::IsAsyncDone(i.opcode()) && hlo::HostTransferOf(hlo::StartOf(i))) {
    return "wait for host";
  }
  if (const auto transfer = hlo::HostTransferOf(i); transfer && !hlo::IsAsyncStart(i.opcode())) {
    return CategoryOf(*transfer);
  }
  switch (i.opcode()) {
    case Opcode::kDot:
    case Opcode::kRaggedDot:
    case Opcode::kConvolution:
      return "convolution fusion";
    case Opcode::kFusion:
      if (i.attrs().fusion_kind() == "kOutput") return "convolution fusion";
      if (i.attrs().fusion_kind() == "kCustom") return "custom fusion";
      return i.attrs().fusion_kind() == "kInput" ? "input fusion" : "loop fusion";
    case Opcode::kTranspose:
    case Opcode::kCopy:
    case Opcode::kReshape:
      return "data formatting";
    default:
      return hlo::IsElementwise(i.opcode()) ? "non-fusion elementwise"
                                            : std::string(hlo::OpcodeName(i.opcode()));
  }
}

// Operations that recompute what the forward pass had are marked by JAX's
// checkpoint in their names; they are work, but not the model's.
bool IsRecomputation(const Instruction& i) {
  return i.op_name().find("rematted_computation") != std::string::npos;
}

absl::StatusOr<hlo::Cost> CostOfKernel(const Instruction& i) {
  if (i.opcode() != Opcode::kCustomCall) return hlo::CostOf(i);
  if (kernels::HasKernelOfItsOwn(i) && !kernels::IsFactorizationCall(i)) {
    // A comparison per candidate; the sorting network is the kernel's affair.
    hlo::Cost compared;
    compared.flops = Flops(hlo::Leaves(i.operand(0)->shape())[0]->ElementCount());
    return compared;
  }
  if (kernels::IsFactorizationCall(i)) return hlo::CostOf(i);
  ASSIGN_OR_RETURN(const kernels::CustomCost custom, kernels::CustomCostOf(i));
  hlo::Cost cost;
  cost.flops = custom.flops;
  cost.transcendentals = custom.transcendentals;
  return cost;
}

}  // namespace

isa::OpInfo InfoOf(const Instruction& i) {
  isa::OpInfo info;
  info.name = i.name();
  info.category = CategoryOf(i);
  info.scope = i.op_name();
  info.source = i.SourceLocation();
  info.shape = i.shape().ToString();
  info.carried = IsCarried(hlo::IsAsyncDone(i.opcode()) ? hlo::StartOf(i) : i);
  return info;
}

isa::OpInfo InfoOfWhole(const Instruction& i) {
  isa::OpInfo info = InfoOf(i);
  const std::string suffix = "-start";
  const size_t at = info.name.rfind(suffix);
  if (at != std::string::npos) info.name.erase(at, suffix.size());
  info.category = std::string(hlo::OpcodeName(hlo::WrappedBy(i).opcode()));
  if (info.category.ends_with(suffix)) info.category.erase(info.category.size() - suffix.size());
  if (const auto transfer = hlo::HostTransferOf(i)) info.category = CategoryOf(*transfer);
  info.is_async = true;
  return info;
}

absl::StatusOr<isa::OpInfo> InfoOfKernel(const Instruction& i,
                                         const timing::KernelTraffic& traffic) {
  isa::OpInfo info = InfoOf(i);
  ASSIGN_OR_RETURN(const hlo::Cost cost, CostOfKernel(i));
  info.flops = cost.flops;
  info.model_flops = IsRecomputation(i) ? Flops(0) : cost.flops;
  info.hbm_bytes = traffic.read + traffic.written;
  return info;
}

}  // namespace tpusim::lowering
