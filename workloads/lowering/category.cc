#include "workloads/cost/schedule_graph.h"
#include "workloads/hlo/analysis/async.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/lowering/operations.h"

namespace tpusim::lowering {

using hlo::Instruction;
using hlo::Opcode;

std::string CategoryOf(hlo::HostTransfer transfer) {
  return transfer == hlo::HostTransfer::kToHost ? "copy to host" : "copy from host";
}

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

}  // namespace tpusim::lowering
