#include "workloads/passes/collectives/all_reduce_kind.h"

#include <fmt/format.h>

#include <optional>

#include "workloads/cost/collective_request.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/transforms/merge_reduces.h"

namespace tpusim::passes {

std::string AllReduceKind(const hlo::Instruction& i) {
  const bool one = i.opcode() == hlo::Opcode::kAllReduce && i.shape().IsArray();
  if (!one || i.has_control_edges()) return "";
  const std::optional<hlo::Opcode> reduction = hlo::ReducerOperation(*i.called()[0]);
  if (!reduction.has_value()) return "";
  return fmt::format("{} {} {} {} {}", static_cast<int>(*reduction),
                     static_cast<int>(i.shape().element_type), i.attrs().constrain_layout(),
                     cost::AxesOf(i), cost::GroupsKeyOf(i));
}

}  // namespace tpusim::passes
