// Copies of modules and computations.
#include <algorithm>
#include <utility>

#include "configs/status_macros.h"
#include "workloads/hlo/ir/ir.h"

namespace tpusim::hlo {

Computation* Module::CopyInto(const Computation& source, std::string name,
                              const std::unordered_map<const Computation*, Computation*>& copies,
                              bool keep_names) {
  auto owned = std::make_unique<Computation>();
  Computation* copy = owned.get();
  computations_.push_back(std::move(owned));
  copy->name_ = std::move(name);
  copy->parent_ = this;
  copy->attrs_ = source.attrs_;
  copy->Changed();
  std::unordered_map<const Instruction*, Instruction*> map;
  map.reserve(source.live_);
  // Instructions first, edges after: creation order may have users first.
  for (const auto& from : source.instructions_) {
    if (from == nullptr) continue;
    auto to = std::make_unique<Instruction>();
    to->opcode_ = from->opcode_;
    to->name_ = keep_names ? from->name_ : UniqueName(from->name_);
    to->id_ = keep_names ? from->id_ : next_id_++;
    to->shape_ = from->shape_;
    to->parent_ = copy;
    to->attrs_ = from->attrs_;
    for (const Computation* called : from->called_) to->called_.push_back(copies.at(called));
    map.emplace(from.get(), to.get());
    copy->Append(std::move(to));
  }
  const auto mapped = [&](const std::vector<Instruction*>& list) {
    std::vector<Instruction*> result;
    result.reserve(list.size());
    for (const Instruction* instruction : list) result.push_back(map.at(instruction));
    return result;
  };
  for (const auto& from : source.instructions_) {
    if (from == nullptr) continue;
    Instruction* to = map.at(from.get());
    to->operands_ = mapped(from->operands_);
    to->users_ = mapped(from->users_);
    to->control_predecessors_ = mapped(from->control_predecessors_);
    to->control_successors_ = mapped(from->control_successors_);
  }
  copy->schedule_ = mapped(source.schedule_);
  if (source.root_ != nullptr) copy->root_ = map.at(source.root_);
  return copy;
}

std::unique_ptr<Module> Module::Clone() const {
  auto clone = std::make_unique<Module>(name_);
  clone->fields_ = fields_;
  clone->names_ = names_;
  clone->next_suffix_ = next_suffix_;
  clone->next_id_ = next_id_;
  std::unordered_map<const Computation*, Computation*> copies;
  for (const Computation* computation : PostOrder()) {
    copies[computation] = clone->CopyInto(*computation, computation->name_, copies, true);
  }
  // Creation order, as in the original.
  std::unordered_map<const Computation*, size_t> position;
  for (size_t i = 0; i < computations_.size(); ++i) position[copies[computations_[i].get()]] = i;
  std::ranges::sort(clone->computations_, [&](const auto& a, const auto& b) {
    return position[a.get()] < position[b.get()];
  });
  if (entry_ != nullptr) clone->entry_ = copies.at(entry_);
  return clone;
}

Computation* Module::CloneComputation(const Computation& source, std::string_view name_hint) {
  std::vector<Computation*> order;
  TPUSIM_CHECK(CalleesFirst({const_cast<Computation*>(&source)}, &order),
               "computations call each other at " + source.name_);
  std::unordered_map<const Computation*, Computation*> copies;
  for (const Computation* computation : order) {
    const bool top = computation == &source && !name_hint.empty();
    copies[computation] = CopyInto(
        *computation, UniqueComputationName(top ? name_hint : std::string_view(computation->name_)),
        copies, false);
  }
  return copies.at(&source);
}

}  // namespace tpusim::hlo
