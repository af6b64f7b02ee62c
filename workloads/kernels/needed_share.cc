#include "workloads/kernels/needed_share.h"

#include <algorithm>

#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"

namespace tpusim::kernels {

using hlo::Instruction;
using hlo::Opcode;

void NeededShare::AddUse(const Instruction& user, size_t index, double share) {
  if (share <= 0 || !user.shape().IsArray()) {
    by_all_ = std::max(by_all_, share > 0 ? 1.0 : 0.0);
    return;
  }
  const auto elements = static_cast<double>(user.shape().ElementCount());
  const auto of_value =
      std::max(1.0, static_cast<double>(user.operand(index)->shape().ElementCount()));
  switch (user.opcode()) {
    case Opcode::kSlice:
    case Opcode::kDynamicSlice:
      by_slices_ += index == 0 ? share * elements / of_value : 1;
      return;
    case Opcode::kDynamicUpdateSlice:
      if (index > 0) by_all_ = 1;
      return;
    default:
      break;
  }
  const bool follows = hlo::IsElementwise(user) || hlo::IsIndexMap(user.opcode()) ||
                       user.opcode() == Opcode::kCopy;
  by_all_ =
      std::max(by_all_, follows ? std::min(1.0, share * std::max(1.0, elements / of_value)) : 1.0);
}

double NeededShare::value() const { return std::min(1.0, std::max(by_all_, by_slices_)); }

}  // namespace tpusim::kernels
