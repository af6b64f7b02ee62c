#include "workloads/passes/collectives/all_reduce_kind.h"

#include <fmt/format.h>

#include <optional>

#include "workloads/cost/collective_request.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/transforms/merge_reduces.h"

namespace tpusim::passes {
namespace {

std::string SumKind(const hlo::Instruction& i) {
  if (!i.shape().IsArray() || i.has_control_edges()) return "";
  const std::optional<hlo::Opcode> reduction = hlo::ReducerOperation(*i.called()[0]);
  if (!reduction.has_value()) return "";
  return fmt::format("{} {} {} {} {}", static_cast<int>(*reduction),
                     static_cast<int>(i.shape().element_type), i.attrs().constrain_layout(),
                     cost::AxesOf(i), cost::GroupsKeyOf(i));
}

}  // namespace

std::string AllReduceKind(const hlo::Instruction& i) {
  return i.opcode() == hlo::Opcode::kAllReduce ? SumKind(i) : "";
}

std::string ReduceScatterKind(const hlo::Instruction& i) {
  return i.opcode() == hlo::Opcode::kReduceScatter ? SumKind(i) : "";
}

}  // namespace tpusim::passes
