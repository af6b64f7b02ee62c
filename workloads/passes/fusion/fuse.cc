#include "workloads/passes/fusion/fuse.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "configs/status_macros.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/passes/pipeline/control.h"

namespace tpusim::passes {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

enum class Role { kNone, kCheap, kLoop, kReduce, kDot, kUpdate };

bool IsIndexTransform(Opcode op) {
  switch (op) {
    case Opcode::kBroadcast:
    case Opcode::kReshape:
    case Opcode::kBitcast:
    case Opcode::kCopy:  // into another order of dimensions
    case Opcode::kTranspose:
    case Opcode::kSlice:
    case Opcode::kDynamicSlice:
    case Opcode::kPad:
    case Opcode::kConcatenate:
    case Opcode::kReverse:
      return true;
    default:
      return false;
  }
}

Role RoleOf(const Instruction& i) {
  if (i.opcode() == Opcode::kReduce) return Role::kReduce;  // also of several arrays
  if (!i.shape().IsArray()) return Role::kNone;
  if (i.opcode() == Opcode::kDot || i.opcode() == Opcode::kConvolution) return Role::kDot;
  if (i.opcode() == Opcode::kDynamicUpdateSlice) return Role::kUpdate;
  if (i.shape().IsScalar()) {
    return i.opcode() == Opcode::kConstant ? Role::kCheap : Role::kNone;
  }
  if (i.opcode() == Opcode::kIota) return Role::kCheap;
  if (i.opcode() == Opcode::kBroadcast && i.operand(0)->shape().IsScalar()) return Role::kCheap;
  if (hlo::IsElementwise(i.opcode()) || IsIndexTransform(i.opcode())) return Role::kLoop;
  return Role::kNone;
}

struct Group {
  Instruction* root = nullptr;
  Role kind = Role::kLoop;
  bool has_dot = false;
  bool only_elementwise = true;       // of the members on the output side
  std::vector<Instruction*> members;  // users before operands
};

// Groups of one computation.
class Grouping {
 public:
  explicit Grouping(Computation& computation) {
    const std::vector<Instruction*> order = computation.PostOrder();
    for (Instruction* i : order) {
      roles_[i] = RoleOf(*i);
      NoteDotAncestor(*i);
    }
    for (auto it = order.rbegin(); it != order.rend(); ++it) Place(*it);
  }

  const std::vector<Group>& groups() const { return groups_; }
  Role role(const Instruction* i) const { return roles_.at(i); }

 private:
  void NoteDotAncestor(const Instruction& i) {
    if (roles_[&i] != Role::kLoop || !hlo::IsElementwise(i.opcode())) return;
    for (const Instruction* operand : i.operands()) {
      if (!hlo::SameDims(operand->shape(), i.shape()) && operand->shape().dims != i.shape().dims) {
        continue;
      }
      if (roles_[operand] == Role::kDot || hangs_on_dot_.contains(operand)) {
        hangs_on_dot_.insert(&i);
        return;
      }
    }
  }

  void Place(Instruction* i) {
    const Role role = roles_[i];
    if (role == Role::kNone || role == Role::kCheap) return;
    const int group = GroupOfAllUsers(*i);
    if (group >= 0 && MayJoin(*i, groups_[group])) {
      Group& g = groups_[group];
      if (FeedsDot(*i)) feeds_dot_.insert(i);
      g.members.push_back(i);
      group_of_[i] = group;
      if (role == Role::kDot) {
        g.has_dot = true;
        g.kind = Role::kDot;
      }
      if (role == Role::kLoop && !hlo::IsElementwise(i->opcode())) g.only_elementwise = false;
      return;
    }
    if (WidensForSeveral(*i)) {
      roles_[i] = Role::kCheap;
      return;
    }
    Group g;
    g.root = i;
    g.kind = role;
    g.has_dot = role == Role::kDot;
    g.only_elementwise = hlo::IsElementwise(i->opcode());
    g.members.push_back(i);
    group_of_[i] = static_cast<int>(groups_.size());
    groups_.push_back(std::move(g));
  }

  // A conversion to a wider type that every one of its kernels could do for itself.
  bool WidensForSeveral(const Instruction& i) const {
    if (i.opcode() != Opcode::kConvert || i.IsRoot() || i.users().size() < 2 ||
        hlo::BitWidth(i.shape().element_type) <=
            hlo::BitWidth(i.operand(0)->shape().element_type) ||
        hangs_on_dot_.contains(&i)) {
      return false;
    }
    return std::all_of(i.users().begin(), i.users().end(), [&](const Instruction* user) {
      const auto it = group_of_.find(user);
      return it != group_of_.end() && MayJoin(i, groups_[it->second]);
    });
  }

  int GroupOfAllUsers(const Instruction& i) const {
    if (i.IsRoot() || i.users().empty()) return -1;
    int group = -1;
    for (const Instruction* user : i.users()) {
      const auto it = group_of_.find(user);
      if (it == group_of_.end() || (group >= 0 && it->second != group)) return -1;
      group = it->second;
    }
    return group;
  }

  bool MayJoin(const Instruction& i, const Group& g) const {
    switch (roles_.at(&i)) {
      case Role::kDot:
        return g.kind == Role::kLoop && g.only_elementwise &&
               g.root->shape().dims == i.shape().dims;
      case Role::kLoop:
        break;
      default:
        return false;
    }
    if (g.kind == Role::kUpdate) {
      // The buffer being updated is not read; only the update is computed.
      return g.root->operand(0) != &i;
    }
    if (g.kind == Role::kDot && FeedsDot(i)) {
      return !hangs_on_dot_.contains(&i) && i.opcode() != Opcode::kConcatenate &&
             i.opcode() != Opcode::kPad;
    }
    if (g.kind == Role::kDot) {
      // Beside the dot: part of the epilogue.
      return hlo::IsElementwise(i.opcode()) || i.opcode() == Opcode::kBroadcast ||
             i.opcode() == Opcode::kBitcast;
    }
    return true;
  }

  // Does `i`, all of whose users are in one group, reach the group's dot (rather
  // than its epilogue) from above?
  bool FeedsDot(const Instruction& i) const {
    return std::any_of(i.users().begin(), i.users().end(), [&](const Instruction* user) {
      return roles_.at(user) == Role::kDot || feeds_dot_.contains(user);
    });
  }

  std::unordered_map<const Instruction*, Role> roles_;
  std::unordered_set<const Instruction*> hangs_on_dot_;
  std::unordered_set<const Instruction*> feeds_dot_;
  std::unordered_map<const Instruction*, int> group_of_;
  std::vector<Group> groups_;
};

std::string FusionName(const Group& g) {
  // As XLA does: the kinds of work inside, the last first, then "fusion".
  if (g.has_dot && g.root->opcode() != Opcode::kDot) {
    return "dot_" + std::string(hlo::OpcodeName(g.root->opcode())) + "_fusion";
  }
  return std::string(hlo::OpcodeName(g.root->opcode())) + "_fusion";
}

// Builds the fused computation of one group and puts a fusion in its place.
class FusionBuilder {
 public:
  FusionBuilder(Computation& outer, const Group& group, const Grouping& grouping)
      : outer_(outer),
        group_(group),
        grouping_(grouping),
        inner_(*outer.parent()->AddComputation("fused_" + FusionName(group))) {}

  void Build() {
    // Members are recorded users first; operands first is what cloning needs.
    for (auto it = group_.members.rbegin(); it != group_.members.rend(); ++it) {
      Instruction* i = *it;
      std::vector<Instruction*> operands;
      for (Instruction* operand : i->operands()) operands.push_back(Inside(operand));
      inner_of_[i] = Clone(*i, std::move(operands));
    }
    inner_.set_root(inner_of_.at(group_.root));
    Instruction* fusion =
        outer_.Add(Opcode::kFusion, group_.root->shape(), parameters_, FusionName(group_));
    const char* kind = group_.kind == Role::kDot      ? "kOutput"
                       : group_.kind == Role::kReduce ? "kInput"
                                                      : "kLoop";
    fusion->mutable_attrs().set_fusion_kind(kind);
    const Instruction* named = NamingMember();
    *fusion->mutable_attrs().mutable_metadata() = named->attrs().metadata();
    fusion->set_called({&inner_});
    group_.root->ReplaceAllUsesWith(fusion);
    for (Instruction* i : group_.members) {
      // Users come first in the list, so each is dead when its turn comes.
      outer_.Remove(i);
    }
  }

 private:
  // The dot names a kernel that has one, otherwise the root does.
  const Instruction* NamingMember() const {
    for (const Instruction* i : group_.members) {
      if (i->opcode() == Opcode::kDot || i->opcode() == Opcode::kConvolution) return i;
    }
    return group_.root;
  }

  Instruction* Clone(const Instruction& i, std::vector<Instruction*> operands) {
    Instruction* copy = inner_.Add(i.opcode(), i.shape(), std::move(operands), i.name(), &i);
    copy->set_called(i.called());
    return copy;
  }

  Instruction* Inside(Instruction* operand) {
    const auto it = inner_of_.find(operand);
    if (it != inner_of_.end()) return it->second;
    Instruction* inside = nullptr;
    if (grouping_.role(operand) == Role::kCheap) {
      std::vector<Instruction*> operands;
      for (Instruction* o : operand->operands()) operands.push_back(Inside(o));
      inside = Clone(*operand, std::move(operands));
    } else {
      inside = inner_.AddParameter(static_cast<int64_t>(parameters_.size()), operand->shape(),
                                   "param_" + std::to_string(parameters_.size()));
      parameters_.push_back(operand);
    }
    inner_of_[operand] = inside;
    return inside;
  }

  Computation& outer_;
  const Group& group_;
  const Grouping& grouping_;
  Computation& inner_;
  std::unordered_map<Instruction*, Instruction*> inner_of_;
  std::vector<Instruction*> parameters_;
};

}  // namespace

absl::Status Fuse(hlo::Module& module, const target::Target&) {
  for (Computation* computation : ControlComputations(module)) {
    const Grouping grouping(*computation);
    for (const Group& group : grouping.groups()) {
      bool has_cheap_operand = false;
      for (const Instruction* operand : group.root->operands()) {
        has_cheap_operand = has_cheap_operand || grouping.role(operand) == Role::kCheap;
      }
      if (group.members.size() > 1 || has_cheap_operand) {
        FusionBuilder(*computation, group, grouping).Build();
      }
    }
    computation->RemoveDead();
  }
  return absl::OkStatus();
}

}  // namespace tpusim::passes
