#include "workloads/hlo/analysis/in_place.h"

#include "workloads/hlo/ir/opcode.h"

namespace tpusim::hlo {

const Instruction* WithoutBitcasts(const Instruction* value) {
  while (value->opcode() == Opcode::kBitcast) value = value->operand(0);
  return value;
}

std::vector<InPlaceResult> InPlaceResults(const Instruction& i) {
  std::vector<InPlaceResult> results;
  switch (i.opcode()) {
    case Opcode::kDynamicUpdateSlice:
      results.push_back({0, 0});
      break;
    case Opcode::kScatter: {
      // Arrays, indices, updates.
      const auto arrays = static_cast<int64_t>(i.operands().size() / 2);
      for (int64_t n = 0; n < arrays; ++n) results.push_back({n, n});
      break;
    }
    case Opcode::kFusion: {
      const Instruction* root = i.called()[0]->root();
      const bool several = root->opcode() == Opcode::kTuple;
      const size_t leaves = several ? root->operands().size() : 1;
      for (size_t n = 0; n < leaves; ++n) {
        const Instruction* made = WithoutBitcasts(several ? root->operand(n) : root);
        if (made->opcode() != Opcode::kDynamicUpdateSlice) continue;
        const Instruction* updated = WithoutBitcasts(made->operand(0));
        if (updated->opcode() != Opcode::kParameter) continue;
        results.push_back({static_cast<int64_t>(n), updated->attrs().parameter_number()});
      }
      break;
    }
    default:
      break;
  }
  return results;
}

}  // namespace tpusim::hlo
