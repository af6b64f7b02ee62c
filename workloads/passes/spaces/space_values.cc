#include <algorithm>
#include <utility>

#include "configs/status_macros.h"
#include "workloads/hlo/analysis/in_place.h"
#include "workloads/hlo/analysis/underlying.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/kernels/view/product.h"
#include "workloads/passes/spaces/space_plan.h"

namespace tpusim::passes {
namespace {

using hlo::Instruction;
using hlo::Opcode;
using hlo::Shape;

// Collectives take what they send from VMEM as well; those of SparseCores do not.
bool SendsFrom(const Instruction& i, int64_t space) {
  return space == hlo::kVmemSpace && hlo::IsCollective(i.opcode()) &&
         !hlo::IsAsyncStart(i.opcode()) && i.opcode() != Opcode::kCollectivePermute &&
         i.opcode() != Opcode::kRaggedAllToAll;
}

bool IsPlaceable(const Shape& shape) {
  return shape.IsArray() && !shape.IsScalar() && shape.layout.memory_space == hlo::kHbmSpace;
}

class ValueCollector {
 public:
  ValueCollector(SpaceTimeline& timeline, const hlo::AliasAnalysis& aliases,
                 const target::Target& target, cost::CostModel& cost, int64_t space)
      : timeline_(timeline), target_(target), cost_(cost), space_(space), storage_(aliases) {}

  absl::StatusOr<std::vector<SpaceValue>> Run() {
    for (Instruction* i : timeline_.order()) Begin(i);
    for (Instruction* i : timeline_.order()) AddName(i);
    std::erase_if(values_, [](const SpaceValue& v) { return v.storage == nullptr; });
    std::vector<SpaceValue> kept;
    for (SpaceValue& value : values_) {
      RETURN_IF_ERROR(AddMaking(value));
      RETURN_IF_ERROR(AddUses(value));
      const bool read = std::any_of(value.uses.begin(), value.uses.end(),
                                    [](const SpaceUse& use) { return use.by_windows; });
      if (read) kept.push_back(std::move(value));
    }
    return kept;
  }

 private:
  // Sorts hold whole lines in VMEM, and take and leave them there as well as windows do. (So they
  // do in modules for v5e, v6e and v7x; of v5p, whose cores share a kernel, all three have HBM.)
  bool TakesPlaced(const Instruction& i) const {
    const bool sorts = i.opcode() == Opcode::kSort || i.opcode() == Opcode::kTopk;
    return hlo::MovesThroughWindows(i.opcode()) || (sorts && target_.chip().CoresPerDevice() == 1);
  }

  void Begin(Instruction* i) {
    if (storage_.Of(i) != i || !IsPlaceable(i->shape()) || i->opcode() == Opcode::kConstant) return;
    const Bytes bytes = target_.PaddedSize(i->shape());
    if (bytes == Bytes(0)) return;
    SpaceValue value;
    value.storage = i;
    value.timeline = &timeline_;
    value.made_at = timeline_.PositionOf(i);
    value.bytes = bytes;
    value.lives_out = storage_.LivesOut(i);
    index_[i] = values_.size();
    values_.push_back(std::move(value));
  }

  void AddName(Instruction* i) {
    const Instruction* storage = storage_.Of(i);
    const auto found = index_.find(storage);
    if (storage == i || found == index_.end()) return;
    SpaceValue& value = values_[found->second];
    Instruction* renamed = nullptr;
    if (hlo::NamesOperand(*i) && i->shape().IsArray()) {
      renamed = i->operand(0);
    } else if (i->opcode() == Opcode::kGetTupleElement) {
      Instruction* tuple = i->operand(0);
      const int64_t index = i->attrs().tuple_index();
      if (tuple->opcode() == Opcode::kTuple) {
        renamed = tuple->operand(static_cast<size_t>(index));
      } else if (value.storage->opcode() == Opcode::kGetTupleElement &&
                 tuple == value.storage->operand(0)) {
        renamed = value.storage;  // the same element once more
      }
    }
    // A value that a loop or a barrier of tuples forwards has more names than are followed here.
    if (renamed == nullptr || storage_.Of(renamed) != storage) {
      value.storage = nullptr;
      index_.erase(found);
      return;
    }
    value.names.push_back(i);
    value.renames[i] = renamed;
  }

  absl::Status AddMaking(SpaceValue& value) {
    Instruction* maker = value.storage;
    int64_t leaf = -1;
    if (maker->opcode() == Opcode::kGetTupleElement) {
      leaf = maker->attrs().tuple_index();
      maker = maker->operand(0);
      if (!timeline_.Has(maker)) return absl::OkStatus();
    }
    if (SendsFrom(*maker, space_)) {
      value.made_at = timeline_.PositionOf(maker);
      value.made_by_windows = true;
      return absl::OkStatus();
    }
    if (!TakesPlaced(*maker)) return absl::OkStatus();
    for (const hlo::InPlaceResult& result : hlo::InPlaceResults(*maker)) {
      if (result.leaf == std::max<int64_t>(0, leaf)) return absl::OkStatus();
    }
    if (space_ == hlo::kVmemSpace && !target_.policy().products_in_vmem &&
        kernels::ProductIn(*maker) != nullptr) {
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(value.maker, cost_.PlaceableOf(*maker, space_));
    value.array = value.maker->operands() + static_cast<size_t>(std::max<int64_t>(0, leaf));
    value.made_at = timeline_.PositionOf(maker);
    value.made_by_windows = true;
    value.saved_by_making = value.maker->SavedBy(value.array);
    return absl::OkStatus();
  }

  absl::Status AddUses(SpaceValue& value) {
    for (Instruction* reader : storage_.ReadersOf(value.storage)) {
      SpaceUse use;
      use.user = reader;
      use.at = timeline_.PositionOf(reader);
      if (SendsFrom(*reader, space_)) use.by_windows = true;
      if (TakesPlaced(*reader)) {
        use.by_windows = true;
        ASSIGN_OR_RETURN(use.kernel, cost_.PlaceableOf(*reader, space_));
        for (size_t o = 0; o < reader->operands().size(); ++o) {
          if (storage_.Of(reader->operand(o)) != value.storage) continue;
          use.arrays.push_back(o);
          use.saved += use.kernel->SavedBy(o);
          use.read += use.kernel->MovedOf(o);
        }
        for (const hlo::InPlaceResult& result : hlo::InPlaceResults(*reader)) {
          const Instruction* updated = reader->operand(static_cast<size_t>(result.operand));
          if (storage_.Of(updated) == value.storage) use.by_windows = false;
        }
      }
      value.uses.push_back(use);
    }
    std::sort(value.uses.begin(), value.uses.end(),
              [](const SpaceUse& a, const SpaceUse& b) { return a.at < b.at; });
    return absl::OkStatus();
  }

  SpaceTimeline& timeline_;
  const target::Target& target_;
  cost::CostModel& cost_;
  const int64_t space_;
  const hlo::AliasAnalysis& storage_;
  std::vector<SpaceValue> values_;
  std::unordered_map<const Instruction*, size_t> index_;  // looked up, never iterated
};

}  // namespace

double SpaceValue::Benefit() const {
  Picoseconds saved = saved_by_making;
  for (const SpaceUse& use : uses) saved += use.saved;
  return static_cast<double>(saved.value()) * timeline->weight();
}

absl::StatusOr<std::vector<SpaceValue>> SpaceValuesOf(SpaceTimeline& timeline,
                                                      const hlo::AliasAnalysis& aliases,
                                                      const target::Target& target,
                                                      cost::CostModel& cost, int64_t space) {
  return ValueCollector(timeline, aliases, target, cost, space).Run();
}

}  // namespace tpusim::passes
