#include "workloads/kernels/kernel_view.h"

#include <algorithm>
#include <set>
#include <unordered_set>

#include "models/timing/kernel_steps.h"
#include "workloads/hlo/analysis/in_place.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/kernels/index_cost.h"
#include "workloads/kernels/needed_share.h"
#include "workloads/kernels/product.h"

namespace tpusim::kernels {
namespace {

using hlo::Instruction;
using hlo::Opcode;
using hlo::Shape;

using Members = std::unordered_set<const Instruction*>;

// How one use of a value touches it.
struct Touch {
  Shape shape;
  bool reads = true;
  const Instruction* indexed_by = nullptr;
};

Touch TouchOf(const Instruction& value, const Instruction& user) {
  const bool first = user.operand(0) == &value;
  switch (user.opcode()) {
    case Opcode::kDynamicUpdateSlice:
      if (first) return {{}, false, nullptr};
      break;
    case Opcode::kSlice:
    case Opcode::kDynamicSlice:
      if (first) return {user.shape(), true, nullptr};
      break;
    case Opcode::kGather:
      if (first) return {user.shape(), true, &user};
      break;
    case Opcode::kScatter: {
      const size_t n = user.operands().size() / 2;
      for (size_t k = 0; k < n; ++k) {
        if (user.operand(k) != &value) continue;
        // Overwritten unseen, or read, combined and written back.
        if (ScatterOverwrites(user)) return {{}, false, nullptr};
        return {user.operand(n + 1 + k)->shape(), true, &user};
      }
      break;
    }
    default:
      break;
  }
  return {value.shape(), true, nullptr};
}

// The largest part of `value` that its users inside touch.
void NoteAccess(const Instruction& value, const Members& members, KernelInput& input) {
  // Bitcasts of it are the value itself.
  struct Use {
    const Instruction* value;
    const Instruction* user;
  };
  std::vector<Use> work;
  const auto add_users = [&](const Instruction& of) {
    for (auto user = of.users().rbegin(); user != of.users().rend(); ++user) {
      if (members.contains(*user)) work.push_back({&of, *user});
    }
  };
  add_users(value);
  while (!work.empty()) {
    const auto [used, user] = work.back();
    work.pop_back();
    if (user->opcode() == Opcode::kBitcast) {
      add_users(*user);
      continue;
    }
    const Touch touch = TouchOf(*used, *user);
    if (!touch.reads) continue;
    input.reads = true;
    if (input.accessed.element_type == hlo::PrimitiveType::kInvalid ||
        touch.shape.ElementCount() > input.accessed.ElementCount()) {
      input.accessed = touch.shape;
      input.indexed_by = touch.indexed_by;
    }
  }
}

KernelOutput OutputOf(const Instruction& value) {
  const Instruction* made = hlo::WithoutBitcasts(&value);
  if (made->opcode() == Opcode::kDynamicUpdateSlice) {
    return {&value, made->operand(1)->shape(), nullptr};
  }
  if (made->opcode() == Opcode::kScatter && made->shape().IsArray()) {
    return {&value, made->operand(2)->shape(), made};
  }
  return {&value, value.shape(), nullptr};
}

void AppendOutputs(const Instruction& root, std::vector<KernelOutput>& outputs) {
  if (root.opcode() == Opcode::kTuple) {
    for (const Instruction* element : root.operands()) AppendOutputs(*element, outputs);
    return;
  }
  if (root.shape().IsArray()) {
    outputs.push_back(OutputOf(root));
    return;
  }
  const std::vector<const Shape*> leaves = hlo::Leaves(root.shape());
  for (size_t n = 0; n < leaves.size(); ++n) {
    if (!leaves[n]->IsArray()) continue;
    KernelOutput output{&root, *leaves[n], nullptr};
    if (root.opcode() == Opcode::kScatter) {
      output.written = root.operand(leaves.size() + 1 + n)->shape();
      output.indexed_by = &root;
    }
    outputs.push_back(output);
  }
}

// Shares of the members, and of inputs where they are read as a whole.
void NoteShares(KernelView& view) {
  std::unordered_map<const Instruction*, NeededShare> needed;  // looked up, never iterated
  needed[view.root].Whole();
  view.shares.resize(view.members.size());
  for (size_t n = view.members.size(); n-- > 0;) {
    const Instruction& member = *view.members[n];
    if (member.users().empty()) needed[&member].Whole();  // work for its own sake
    view.shares[n] = needed[&member].value();
    for (size_t o = 0; o < member.operands().size(); ++o) {
      needed[member.operand(o)].AddUse(member, o, view.shares[n]);
    }
  }
  for (KernelInput& input : view.inputs) {
    if (!input.reads || input.indexed_by != nullptr) continue;
    const double whole = static_cast<double>(input.value->shape().ElementCount());
    const double accessed = static_cast<double>(input.accessed.ElementCount());
    if (accessed > 0) input.share = std::min(1.0, needed[input.inside].value() * whole / accessed);
  }
}

}  // namespace

const Instruction* KernelView::FindMember(Opcode opcode) const {
  for (const Instruction* m : members) {
    if (m->opcode() == opcode) return m;
  }
  return nullptr;
}

const Instruction* KernelView::FindMember(const std::function<bool(Opcode)>& wanted) const {
  for (const Instruction* m : members) {
    if (wanted(m->opcode())) return m;
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
  const Members members(view.members.begin(), view.members.end());
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
    input.space = SpaceOf(input.value->shape());
    NoteAccess(*input.inside, members, input);
    if (!input.reads) input.accessed = hlo::MakeShape(input.value->shape().element_type, {0});
    view.inputs.push_back(std::move(input));
  }
  NoteShares(view);
  AppendOutputs(*view.root, view.outputs);
  // The outside knows where results go.
  const std::vector<const Shape*> leaves = hlo::Leaves(instruction.shape());
  for (size_t n = 0; n < std::min(leaves.size(), view.outputs.size()); ++n) {
    view.outputs[n].space = SpaceOf(*leaves[n]);
  }
  return view;
}

std::vector<int> InputsBehind(const KernelView& view, const Instruction& member, int index) {
  std::vector<const Instruction*> work = {member.operand(index)};
  std::unordered_set<const Instruction*> seen;
  std::set<int> found;
  const Members members(view.members.begin(), view.members.end());
  while (!work.empty()) {
    const Instruction* i = work.back();
    work.pop_back();
    if (!seen.insert(i).second) continue;
    for (size_t n = 0; n < view.inputs.size(); ++n) {
      if (view.inputs[n].inside == i) found.insert(static_cast<int>(n));
    }
    if (!members.contains(i) || IsProduct(i->opcode())) continue;
    work.insert(work.end(), i->operands().begin(), i->operands().end());
  }
  return {found.begin(), found.end()};
}

isa::MemorySpace SpaceOf(const Shape& shape) {
  return target::MemorySpaceOf(shape.IsArray() ? shape.layout.memory_space : hlo::kHbmSpace).isa;
}

Bytes BytesOf(const KernelInput& input, const target::Target& target) {
  if (!input.reads) return Bytes(0);
  if (input.indexed_by == nullptr) {
    return timing::Scaled(target.PaddedSize(input.accessed), input.share);
  }
  const Bytes touched = input.indexed_by->opcode() == Opcode::kGather
                            ? AccessOfGather(*input.indexed_by, target).Total()
                            : AccessOfScatter(*input.indexed_by, target).Total();
  return touched;
}

Bytes BytesOf(const KernelOutput& output, const target::Target& target) {
  return output.indexed_by == nullptr ? target.PaddedSize(output.written)
                                      : AccessOfScatter(*output.indexed_by, target).Total();
}

int64_t VectorRegisters(const target::Target& target, const Shape& shape) {
  const configs::VpuParams& vpu = target.chip().vpu;
  if (shape.ElementCount() == 0) return 0;
  // Sub-32-bit elements are computed on in 32-bit lanes.
  Shape wide = shape;
  wide.element_type = hlo::PrimitiveType::kF32;
  const int64_t words = std::max<int64_t>(1, hlo::BitWidth(shape.element_type) / 32);
  return words * CeilDiv(target.PaddedSize(wide).value(), vpu.sublanes * vpu.lanes * 4);
}

}  // namespace tpusim::kernels
