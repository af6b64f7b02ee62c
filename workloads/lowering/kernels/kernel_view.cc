#include "workloads/lowering/kernels/kernel_view.h"

#include <algorithm>
#include <set>
#include <unordered_set>

#include "workloads/hlo/opcode.h"

namespace tpusim::lowering {
namespace {

using hlo::Instruction;
using hlo::Opcode;
using hlo::Shape;

// The part of `value` that its users touch, given that all users are inside.
void NoteAccess(const Instruction& value, const std::unordered_set<const Instruction*>& members,
                Shape& largest, bool& reads) {
  for (const Instruction* user : value.users()) {
    if (!members.contains(user)) continue;
    if (user->opcode() == Opcode::kBitcast) {
      NoteAccess(*user, members, largest, reads);
      continue;
    }
    const bool updated_in_place =
        user->opcode() == Opcode::kDynamicUpdateSlice && user->operand(0) == &value;
    if (updated_in_place) continue;
    reads = true;
    const bool sliced =
        user->operand(0) == &value &&
        (user->opcode() == Opcode::kSlice || user->opcode() == Opcode::kDynamicSlice);
    const Shape& touched = sliced ? user->shape() : value.shape();
    if (largest.element_type == hlo::PrimitiveType::kInvalid ||
        touched.ElementCount() > largest.ElementCount()) {
      largest = touched;
    }
  }
}

}  // namespace

const Instruction* KernelView::FindMember(Opcode opcode) const {
  for (const Instruction* m : members) {
    if (m->opcode() == opcode) return m;
  }
  return nullptr;
}

KernelView ViewKernel(const Instruction& instruction) {
  KernelView view;
  view.instruction = &instruction;
  const bool fused = instruction.opcode() == Opcode::kFusion;
  if (fused) {
    const hlo::Computation& inner = *instruction.called()[0];
    view.root = inner.root();
    for (const Instruction* i : inner.PostOrder()) {
      if (i->opcode() != Opcode::kParameter) view.members.push_back(i);
    }
  } else {
    view.root = &instruction;
    view.members = {&instruction};
  }
  const std::unordered_set<const Instruction*> members(view.members.begin(), view.members.end());
  std::vector<Instruction*> parameters;
  if (fused) parameters = instruction.called()[0]->parameters();
  for (size_t n = 0; n < instruction.operands().size(); ++n) {
    KernelInput input;
    input.value = instruction.operand(n);
    input.inside = fused ? parameters[n] : instruction.operand(n);
    const bool listed = std::any_of(view.inputs.begin(), view.inputs.end(),
                                    [&](const KernelInput& i) { return i.inside == input.inside; });
    if (listed) continue;  // add(x, x) reads x once
    input.reads = false;
    NoteAccess(*input.inside, members, input.accessed, input.reads);
    if (!input.reads) input.accessed = hlo::MakeShape(input.value->shape().element_type, {0});
    view.inputs.push_back(std::move(input));
  }
  return view;
}

std::vector<int> InputsBehind(const KernelView& view, const Instruction& member, int index) {
  std::vector<const Instruction*> work = {member.operand(index)};
  std::unordered_set<const Instruction*> seen;
  std::set<int> found;
  const std::unordered_set<const Instruction*> members(view.members.begin(), view.members.end());
  while (!work.empty()) {
    const Instruction* i = work.back();
    work.pop_back();
    if (!seen.insert(i).second) continue;
    for (size_t n = 0; n < view.inputs.size(); ++n) {
      if (view.inputs[n].inside == i) found.insert(static_cast<int>(n));
    }
    if (!members.contains(i) || i->opcode() == Opcode::kDot) continue;
    work.insert(work.end(), i->operands().begin(), i->operands().end());
  }
  return {found.begin(), found.end()};
}

int64_t VectorRegisters(const passes::Target& target, const Shape& shape) {
  const configs::VpuParams& vpu = target.chip().vpu;
  if (shape.ElementCount() == 0) return 0;
  // Sub-32-bit elements are computed on in 32-bit lanes.
  Shape wide = shape;
  wide.element_type = hlo::PrimitiveType::kF32;
  return CeilDiv(target.PaddedSize(wide).value(), vpu.sublanes * vpu.lanes * 4);
}

}  // namespace tpusim::lowering
