#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "workloads/hlo/analysis/alias.h"
#include "workloads/hlo/analysis/underlying.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/passes/spaces/space_plan.h"

namespace tpusim::passes {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;
using hlo::Shape;

void Place(Instruction* i, int64_t leaf, int64_t space) {
  Shape shape = i->shape();
  (leaf < 0 ? shape : shape.tuple[static_cast<size_t>(leaf)]).layout.memory_space = space;
  i->set_shape(std::move(shape));
}

Shape InSpace(Shape shape, int64_t space) {
  shape.layout.memory_space = space;
  return shape;
}

class Applier {
 public:
  Applier(SpaceTimeline& timeline, int64_t space)
      : timeline_(timeline),
        computation_(*timeline.computation()),
        space_(space),
        over_(timeline.order().size()),
        before_(timeline.order().size()) {}

  void Run(const std::vector<SpacePlan>& plans) {
    for (const SpacePlan& plan : plans) {
      if (!plan.allocations.empty()) Apply(plan);
    }
    std::vector<Instruction*> schedule;
    for (size_t p = 0; p < before_.size(); ++p) {
      for (Instruction* i : over_[p]) schedule.push_back(i);
      for (Instruction* i : before_[p]) schedule.push_back(i);
      schedule.push_back(timeline_.order()[p]);
    }
    computation_.set_schedule(std::move(schedule));
    RemoveUnread();
  }

 private:
  // One place where the contents of a value are: `root` and what renames it.
  struct Version {
    const SpaceValue* value = nullptr;
    Instruction* root = nullptr;
    std::unordered_map<const Instruction*, Instruction*> names;  // by the name in the program
  };

  // A reader of a value, and the name by which it reads it.
  struct Read {
    Instruction* user = nullptr;
    size_t operand = 0;
    Instruction* name = nullptr;
  };

  void Apply(const SpacePlan& plan) {
    const SpaceValue& value = *plan.value;
    std::unordered_set<const Instruction*> own(value.names.begin(), value.names.end());
    std::vector<Read> reads;  // before anything changes
    const auto collect = [&](Instruction* name) {
      for (Instruction* user : name->users()) {
        if (own.contains(user)) continue;
        for (size_t o = 0; o < user->operands().size(); ++o) {
          if (user->operand(o) == name) reads.push_back({user, o, name});
        }
      }
    };
    collect(value.storage);
    for (Instruction* name : value.names) collect(name);
    std::stable_sort(reads.begin(), reads.end(), [this](const Read& a, const Read& b) {
      return PositionOf(a.user) < PositionOf(b.user);
    });

    std::unordered_set<const Instruction*> served;
    for (const SpaceAllocation& allocation : plan.allocations) {
      for (const SpaceUse* use : allocation.uses) served.insert(use->user);
    }
    const bool made_there = !plan.allocations.front().prefetched;
    Version in_hbm{&value, value.storage, {}};
    if (made_there && plan.evicted) {
      // What only names it, such as a tuple, comes before what reads it.
      size_t over = plan.evicted_by;
      for (const Read& read : reads) {
        if (!served.contains(read.user)) over = std::min(over, PositionOf(read.user));
      }
      in_hbm.root = Copy(value.storage, hlo::kHbmSpace, PositionOf(value.storage) + 1, over);
    }
    if (made_there) {
      Relink(reads, [&](const Read& read) { return !served.contains(read.user); }, in_hbm);
    }
    if (made_there && plan.evicted) RelinkResult(in_hbm);
    for (const SpaceAllocation& allocation : plan.allocations) {
      if (!allocation.prefetched) continue;
      const size_t first = allocation.uses.front()->at;
      Version there{&value, nullptr, {}};
      there.root = Copy(in_hbm.root, space_, allocation.from, first);
      std::unordered_set<const Instruction*> users;
      for (const SpaceUse* use : allocation.uses) users.insert(use->user);
      Relink(reads, [&](const Read& read) { return users.contains(read.user); }, there);
    }
    if (made_there) PlaceMade(value);
  }

  size_t PositionOf(const Instruction* user) const { return timeline_.PositionOf(user); }

  // Redirects those reads that `of` assigns to the version.
  template <typename Of>
  void Relink(const std::vector<Read>& reads, const Of& of, Version& version) {
    std::vector<Instruction::OperandChange> changes;
    for (const Read& read : reads) {
      if (!of(read)) continue;
      changes.push_back(
          {read.user, read.operand, NameOf(version, read.name, PositionOf(read.user))});
    }
    Instruction::ReplaceOperands(changes);
  }

  bool IsResult(const SpaceValue& value) const {
    const Instruction* root = computation_.root();
    return root == value.storage || value.renames.contains(root);
  }
  void RelinkResult(Version& version) {
    const Instruction* root = computation_.root();
    if (!IsResult(*version.value)) return;
    computation_.set_root(NameOf(version, root, timeline_.order().size() - 1));
  }

  // Writes the memory space into all names of a value that is made there.
  void PlaceMade(const SpaceValue& value) {
    if (value.storage->opcode() == Opcode::kGetTupleElement) {
      Place(value.storage->operand(0), value.storage->attrs().tuple_index(), space_);
    }
    Place(value.storage, -1, space_);
    for (Instruction* name : value.names) Place(name, -1, space_);
  }

  // Starts before the instruction at `from`, is over before that at `until`.
  Instruction* Copy(Instruction* of, int64_t to, size_t from, size_t until) {
    const Shape result = InSpace(of->shape(), to);
    Instruction* start = computation_.Add(
        Opcode::kCopyStart,
        hlo::MakeTupleShape({result, of->shape(), hlo::MakeShape(hlo::PrimitiveType::kU32, {})}),
        {of}, of->name() + ".copy-start", of);
    Instruction* done =
        computation_.Add(Opcode::kCopyDone, result, {start}, of->name() + ".copy-done", of);
    before_[from].push_back(start);
    (until > from ? over_ : before_)[until].push_back(done);  // behind its start
    return done;
  }

  // `name` as it would be called if the value were that version.
  Instruction* NameOf(Version& version, const Instruction* name, size_t before) {
    if (name == version.value->storage) return version.root;
    const auto known = version.names.find(name);
    if (known != version.names.end()) return known->second;
    Instruction* renamed = NameOf(version, version.value->renames.at(name), before);
    Instruction* result = renamed;
    if (name->opcode() == Opcode::kBitcast) {
      const int64_t space = renamed->shape().layout.memory_space;
      result = computation_.Add(Opcode::kBitcast, InSpace(name->shape(), space), {renamed},
                                name->name(), name);
      before_[before].push_back(result);
    }
    version.names[name] = result;
    return result;
  }

  // Names that nothing uses any more.
  void RemoveUnread() {
    std::vector<Instruction*> kept = computation_.schedule();
    computation_.set_schedule({});
    for (auto it = kept.rbegin(); it != kept.rend(); ++it) {
      Instruction* i = *it;
      if (!hlo::OnlyNames(*i) || !i->users().empty() || i->IsRoot() || i->has_control_edges())
        continue;
      computation_.Remove(i);
      *it = nullptr;
    }
    std::erase(kept, nullptr);
    computation_.set_schedule(std::move(kept));
  }

  SpaceTimeline& timeline_;
  Computation& computation_;
  const int64_t space_;
  // Before the instruction at a position: ends of copies, whose sources make room, then what
  // may take it.
  std::vector<std::vector<Instruction*>> over_, before_;
};

}  // namespace

void ApplySpaces(const std::vector<SpacePlan>& plans, SpaceTimeline& timeline, int64_t space) {
  Applier(timeline, space).Run(plans);
}

}  // namespace tpusim::passes
