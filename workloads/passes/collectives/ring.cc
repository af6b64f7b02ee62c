#include "workloads/passes/collectives/ring.h"

#include <algorithm>

#include "workloads/hlo/ir/annotations.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"

namespace tpusim::passes {
namespace {

using hlo::Instruction;
using hlo::Opcode;
using hlo::PrimitiveType;

// The numbers of all partitions in their groups.
std::vector<int64_t> NumbersOf(const std::vector<std::vector<int64_t>>& groups) {
  std::vector<int64_t> numbers;
  for (const std::vector<int64_t>& group : groups) {
    for (size_t n = 0; n < group.size(); ++n) {
      const auto partition = static_cast<size_t>(group[n]);
      if (partition >= numbers.size()) numbers.resize(partition + 1);
      numbers[partition] = static_cast<int64_t>(n);
    }
  }
  return numbers;
}

// The stride with which numbers are (partition / stride) mod members; 0: there is none.
int64_t StrideOf(const std::vector<int64_t>& numbers, int64_t members) {
  const auto one = std::find(numbers.begin(), numbers.end(), 1);
  const int64_t stride = one - numbers.begin();
  for (size_t p = 0; p < numbers.size(); ++p) {
    if (stride == 0 || static_cast<int64_t>(p) / stride % members != numbers[p]) return 0;
  }
  return stride;
}

}  // namespace

Instruction* Ring::Position(hlo::Computation* computation, const Instruction& like) const {
  const std::vector<int64_t> numbers = NumbersOf(groups_);
  const int64_t stride = StrideOf(numbers, members());
  const hlo::Shape scalar = hlo::MakeShape(PrimitiveType::kU32, {});
  Instruction* number = computation->Add(Opcode::kPartitionId, scalar, {}, "", &like);
  if (stride == 0) {
    Instruction* table = hlo::AddLiteral(
        computation, hlo::MakeIntVectorLiteral(PrimitiveType::kU32, numbers), "numbers");
    number = computation->Add(Opcode::kDynamicSlice, hlo::MakeShape(PrimitiveType::kU32, {1}),
                              {table, number}, "", &like);
    hlo::SetDynamicSliceSizes(number, {1});
    number = computation->Add(Opcode::kReshape, scalar, {number}, "", &like);
  }
  if (stride > 1) {
    Instruction* by = hlo::AddIntConstant(computation, PrimitiveType::kU32, stride);
    number = computation->Add(Opcode::kDivide, scalar, {number, by}, "", &like);
  }
  if (stride != 0 && static_cast<int64_t>(numbers.size()) > stride * members()) {
    Instruction* by = hlo::AddIntConstant(computation, PrimitiveType::kU32, members());
    number = computation->Add(Opcode::kRemainder, scalar, {number, by}, "", &like);
  }
  return computation->Add(Opcode::kConvert, hlo::MakeShape(PrimitiveType::kS32, {}), {number}, "",
                          &like);
}

Instruction* Ring::Begin(hlo::Computation* computation, int64_t extent,
                         const Instruction& like) const {
  Instruction* position = Position(computation, like);
  Instruction* by = hlo::AddIntConstant(computation, PrimitiveType::kS32, extent);
  return computation->Add(Opcode::kMultiply, position->shape(), {position, by}, "", &like);
}

Instruction* Ring::Permute(Instruction* value, Way way, const Instruction& like) {
  std::vector<hlo::SourceTargetPair> pairs;
  for (const std::vector<int64_t>& group : groups_) {
    for (size_t n = 0; n < group.size(); ++n) {
      const size_t next = (n + 1) % group.size();
      if (way == Way::kUp) {
        pairs.emplace_back(group[n], group[next]);
      } else {
        pairs.emplace_back(group[next], group[n]);
      }
    }
  }
  Instruction* permute = value->parent()->Add(Opcode::kCollectivePermute, value->shape(), {value},
                                              "collective-permute", &like);
  permute->mutable_attrs().set_channel_id(channel_++);
  hlo::SetSourceTargetPairs(permute, pairs);
  if (!axes_.empty()) hlo::annotations::kAxes.Set(permute, axes_);
  if (reshard_site_) hlo::annotations::kReshardSite.Set(permute, *reshard_site_);
  return permute;
}

int64_t FirstFreeChannel(const hlo::Module& module) {
  int64_t last = 0;
  for (const hlo::Computation* computation : module.computations()) {
    for (const Instruction* i : computation->instructions()) {
      last = std::max<int64_t>(last, i->attrs().channel_id());
    }
  }
  return last + 1;
}

}  // namespace tpusim::passes
