#include "workloads/hlo/analysis/storage.h"

#include "workloads/hlo/ir/opcode.h"

namespace tpusim::hlo {
bool NamesOperand(const Instruction& i) {
  return ForwardsOperand(i.opcode()) && !IsControlFlow(i.opcode()) && !IsAsyncDone(i.opcode()) &&
         i.opcode() != Opcode::kAsyncUpdate;
}

bool OnlyNames(const Instruction& i) {
  return NamesOperand(i) || i.opcode() == Opcode::kTuple || i.opcode() == Opcode::kGetTupleElement;
}

bool IsInvariantElement(const Instruction& loop, int64_t index) {
  const Instruction* root = loop.called()[0]->root();
  if (root->opcode() != Opcode::kTuple) return false;
  const Instruction* next = root->operand(static_cast<size_t>(index));
  return next->opcode() == Opcode::kGetTupleElement &&
         next->operand(0)->opcode() == Opcode::kParameter && next->attrs().tuple_index() == index;
}

StorageAnalysis::StorageAnalysis(const Computation& computation) {
  const std::vector<Instruction*> order = computation.PostOrder();
  for (const Instruction* i : order) {
    const Instruction* made_by = i;
    if (i->opcode() == Opcode::kGetTupleElement) {
      const int64_t index = i->attrs().tuple_index();
      const Instruction* tuple = Of(i->operand(0));
      if (tuple->opcode() == Opcode::kWhile && IsInvariantElement(*tuple, index)) {
        const Instruction* initial = Of(tuple->operand(0));
        if (initial->opcode() == Opcode::kTuple) tuple = initial;
      }
      made_by = tuple->opcode() == Opcode::kTuple
                    ? Of(tuple->operand(static_cast<size_t>(index)))
                    : elements_[tuple].emplace(index, i).first->second;
    } else if (NamesOperand(*i)) {
      made_by = Of(i->operand(0));
    }
    storage_[i] = made_by;
  }
  for (Instruction* i : order) {
    if (OnlyNames(*i)) continue;
    for (const Instruction* operand : i->operands()) AddReads(operand, i);
    if (!IsAsyncStart(i->opcode())) continue;
    // Reads until the done.
    for (Instruction* next = i; !next->users().empty();) {
      next = next->users()[0];
      if (next->opcode() == Opcode::kAsyncUpdate) continue;
      if (IsAsyncDone(next->opcode())) {
        for (const Instruction* operand : i->operands()) AddReads(operand, next);
      }
      break;
    }
  }
  ForEachStorage(computation.root(), [&](const Instruction* s) { uses_[s].lives_out = true; });
}

template <typename Visit>
void StorageAnalysis::ForEachStorage(const Instruction* value, Visit visit) const {
  std::vector<const Instruction*> work = {value};
  while (!work.empty()) {
    const Instruction* v = Of(work.back());
    work.pop_back();
    if (v->opcode() == Opcode::kTuple) {
      work.insert(work.end(), v->operands().begin(), v->operands().end());
      continue;
    }
    visit(v);
    const auto elements = elements_.find(v);
    if (elements == elements_.end()) continue;
    for (const auto& [index, element] : elements->second) visit(element);
  }
}

void StorageAnalysis::AddReader(const Instruction* storage, Instruction* reader) {
  std::vector<Instruction*>& readers = uses_[storage].readers;
  if (readers.empty() || readers.back() != reader) readers.push_back(reader);
}

void StorageAnalysis::AddReads(const Instruction* operand, Instruction* reader) {
  ForEachStorage(operand, [&](const Instruction* s) { AddReader(s, reader); });
}

const Instruction* StorageAnalysis::Of(const Instruction* value) const {
  const auto known = storage_.find(value);
  return known == storage_.end() ? value : known->second;
}

const std::vector<Instruction*>& StorageAnalysis::ReadersOf(const Instruction* storage) const {
  const auto uses = uses_.find(storage);
  return uses == uses_.end() ? none_ : uses->second.readers;
}

bool StorageAnalysis::LivesOut(const Instruction* storage) const {
  const auto uses = uses_.find(storage);
  return uses != uses_.end() && uses->second.lives_out;
}

}  // namespace tpusim::hlo
