#include "workloads/kernels/view/kernel_view.h"

#include <algorithm>
#include <set>
#include <unordered_set>

#include "configs/memory.h"
#include "configs/vector_register.h"
#include "models/timing/kernel_steps.h"
#include "workloads/hlo/analysis/in_place.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/ir/shape_proto.h"
#include "workloads/kernels/view/needed_share.h"
#include "workloads/kernels/view/product.h"

namespace tpusim::kernels {
namespace {

using hlo::Instruction;
using hlo::Opcode;
using hlo::Shape;

using Members = std::unordered_set<const Instruction*>;

// The rows that a lookup reads of one array, together.
const Shape& ShapeOfRows(const Instruction& lookup) {
  return lookup.opcode() == Opcode::kGather ? lookup.shape() : lookup.operands().back()->shape();
}

void AppendOutputs(const Instruction& root, std::vector<KernelOutput>& outputs) {
  if (root.opcode() == Opcode::kTuple) {
    for (const Instruction* element : root.operands()) AppendOutputs(*element, outputs);
    return;
  }
  for (const Shape* leaf : hlo::Leaves(root.shape())) {
    if (leaf->IsArray()) outputs.push_back({&root, *leaf, nullptr});
  }
}

// Results that stay in the buffer of an operand: only what changes is written.
void NoteUpdates(KernelView& view) {
  const std::vector<const Shape*> leaves = hlo::Leaves(view.instruction->shape());
  if (leaves.size() != view.outputs.size()) return;  // tokens among them
  for (const hlo::InPlaceResult& result : hlo::InPlaceResults(*view.instruction)) {
    KernelOutput& output = view.outputs[static_cast<size_t>(result.leaf)];
    output.written = result.update->operand(result.update_operand)->shape();
    if (result.update->opcode() == Opcode::kScatter) output.indexed_by = result.update;
  }
}

// Shares of the members and of the inputs, and what is looked up in these.
void NoteShares(KernelView& view, const target::Target& target) {
  const Members members(view.members.begin(), view.members.end());
  std::unordered_map<const Instruction*, size_t> inputs;  // looked up, never iterated
  for (size_t n = 0; n < view.inputs.size(); ++n) inputs.emplace(view.inputs[n].inside, n);
  std::unordered_set<const Instruction*> updates;  // that keep the buffer of an operand
  for (const hlo::InPlaceResult& result : hlo::InPlaceResults(*view.instruction)) {
    updates.insert(result.update);
  }
  std::unordered_map<const Instruction*, NeededShare> needed;
  needed[view.root].Whole();
  view.shares.resize(view.members.size());
  for (size_t n = view.members.size(); n-- > 0;) {
    const Instruction& member = *view.members[n];
    if (member.users().empty()) needed[&member].Whole();  // work for its own sake
    view.shares[n] = needed[&member].value();
    for (size_t o = 0; o < member.operands().size(); ++o) {
      const Instruction* storage = member.operand(o);
      while (members.contains(storage) && storage->opcode() == Opcode::kBitcast) {
        storage = storage->operand(0);
      }
      const auto input = inputs.find(storage);
      const Use use(member, o, target);
      const bool changes =
          use.access == Access::kOverwritten || member.opcode() == Opcode::kScatter;
      const bool updates_copy = changes && !updates.contains(&member);
      const bool in_memory = input != inputs.end() && !updates_copy;
      needed[member.operand(o)].AddUse(use, view.shares[n], in_memory);
      if (in_memory && use.access == Access::kRows)
        view.inputs[input->second].lookups.push_back(&member);
    }
  }
  for (KernelInput& input : view.inputs) input.share = needed[input.inside].value();
}

// Returns the memory that a kernel reads an operand from. Scalars that the scalar core has computed
// are in its own memory, from where they reach a kernel without a copy; those of the program's
// arguments lie in HBM.
isa::MemorySpace SpaceOfInput(const Instruction& value) {
  const Shape& shape = value.shape();
  const bool computed = shape.IsScalar() && value.opcode() != Opcode::kParameter;
  const bool scalar = computed || (shape.IsArray() && shape.ElementCount() == 1 &&
                                   hlo::IsScalarSpace(shape.layout.memory_space));
  return scalar ? isa::MemorySpace::kVmem : SpaceOf(shape);
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

KernelView ViewKernel(const Instruction& instruction, const target::Target& target) {
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
  std::vector<Instruction*> parameters;
  if (fused) parameters = instruction.called()[0]->parameters();
  for (size_t n = 0; n < instruction.operands().size(); ++n) {
    KernelInput input;
    input.value = instruction.operand(n);
    input.inside = fused ? parameters[n] : instruction.operand(n);
    const bool listed = std::any_of(view.inputs.begin(), view.inputs.end(),
                                    [&](const KernelInput& i) { return i.inside == input.inside; });
    if (listed) continue;  // add(x, x) reads x once
    input.space = SpaceOfInput(*input.value);
    view.inputs.push_back(std::move(input));
  }
  NoteShares(view, target);
  AppendOutputs(*view.root, view.outputs);
  NoteUpdates(view);
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

std::unordered_set<const Instruction*> MembersBehind(const KernelView& view,
                                                     const Instruction& member, int index) {
  const Members members(view.members.begin(), view.members.end());
  Members found;
  std::vector<const Instruction*> work = {member.operand(index)};
  while (!work.empty()) {
    const Instruction* i = work.back();
    work.pop_back();
    if (!members.contains(i) || !found.insert(i).second) continue;
    work.insert(work.end(), i->operands().begin(), i->operands().end());
  }
  return found;
}

bool SpreadsOver(const KernelView& view, const Instruction& reduction) {
  const Members members(view.members.begin(), view.members.end());
  std::vector<const Instruction*> work = {&reduction};
  while (!work.empty()) {
    const Instruction* i = work.back();
    work.pop_back();
    for (const Instruction* user : i->users()) {
      if (!members.contains(user)) continue;
      // Over all of a row at every element: a reduction and its broadcast in one.
      const bool spread = reduction.opcode() == Opcode::kReduceWindow
                              ? reduction.shape().dims == reduction.operand(0)->shape().dims
                              : user->shape().rank() > reduction.shape().rank();
      if (hlo::IsElementwise(*user) && spread) return true;
      if (user->opcode() != Opcode::kTuple) work.push_back(user);
    }
  }
  return false;
}

isa::MemorySpace SpaceOf(const Shape& shape) {
  return configs::MemoryOfNumber(shape.IsArray() ? shape.layout.memory_space : hlo::kHbmSpace)
      .space;
}

Bytes BytesOf(const KernelInput& input, const target::Target& target) {
  Bytes bytes = timing::Scaled(target.PaddedSize(input.value->shape()), input.share);
  for (const Instruction* lookup : input.lookups) {
    bytes += IndexedAccessOf(*lookup, target).Total();
  }
  return bytes;
}

Bytes BytesOf(const KernelOutput& output, const target::Target& target) {
  return output.indexed_by == nullptr ? target.PaddedSize(output.written)
                                      : IndexedAccessOf(*output.indexed_by, target).Total();
}

std::vector<isa::Window> WholeWindows(const KernelView& view, const target::Target& target) {
  std::vector<isa::Window> windows;
  const auto add = [&](isa::WindowKind kind, const auto& array, const std::string& name) {
    isa::Window& window = windows.emplace_back();
    window.kind = kind;
    window.space = array.space;
    window.operand = name;
    window.bytes = BytesOf(array, target);
    window.buffers = 1;
  };
  for (const KernelInput& input : view.inputs) {
    if (input.reads()) add(isa::WindowKind::kInput, input, input.value->name());
  }
  for (const KernelOutput& output : view.outputs) {
    add(isa::WindowKind::kOutput, output, view.instruction->name());
  }
  return windows;
}

double MostRegisters(const KernelView& view, const target::Target& target) {
  double most = 0;
  for (const KernelInput& input : view.inputs) most = std::max(most, RegistersOf(input, target));
  for (const KernelOutput& output : view.outputs) {
    most = std::max(most, static_cast<double>(VectorRegisters(target, output.written)));
  }
  return most;
}

double ElementsOf(const KernelInput& input) {
  double elements = input.share * static_cast<double>(input.value->shape().ElementCount());
  for (const Instruction* lookup : input.lookups) {
    elements += static_cast<double>(ShapeOfRows(*lookup).ElementCount());
  }
  return elements;
}

double RegistersOf(const KernelInput& input, const target::Target& target) {
  if (!input.value->shape().IsArray()) return 0;
  double registers =
      input.share * static_cast<double>(VectorRegisters(target, input.value->shape()));
  for (const Instruction* lookup : input.lookups) {
    registers += static_cast<double>(VectorRegisters(target, ShapeOfRows(*lookup)));
  }
  return registers;
}

double UnpackWork(const KernelInput& input, const target::Target& target) {
  const hlo::PrimitiveType type = input.value->shape().element_type;
  if (hlo::BitWidth(type) >= 32) return 0;  // number: bits of a type
  const bool f16 = type == hlo::PrimitiveType::kF16;
  return RegistersOf(input, target) *
         target.instructions().At("widen", f16 ? "f16" : "bf16").valu;
}

int64_t VectorRegisters(const target::Target& target, const Shape& shape) {
  if (shape.ElementCount() == 0) return 0;
  // Sub-32-bit elements are computed on in 32-bit lanes.
  Shape wide = shape;
  wide.element_type = hlo::PrimitiveType::kF32;
  // number: bits of a type
  const int64_t words = std::max<int64_t>(1, hlo::BitWidth(shape.element_type) / 32);
  return words *
         CeilDiv(target.PaddedSize(wide).value(), configs::RegisterBytes(target.chip().vpu));
}

}  // namespace tpusim::kernels
