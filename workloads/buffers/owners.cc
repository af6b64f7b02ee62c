#include "workloads/buffers/owners.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "workloads/hlo/analysis/call_graph.h"
#include "workloads/hlo/analysis/donation.h"
#include "workloads/hlo/analysis/underlying.h"
#include "workloads/hlo/ir/opcode.h"

namespace tpusim::buffers {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

// Parts of a train step, and sets of them.
using Parts = unsigned;
constexpr Parts kForward = 1, kBackward = 2, kOther = 4;  // number: bits of a set

Parts PartOf(const std::string& op_name) {
  if (op_name.find("transpose(") != std::string::npos) return kBackward;
  return op_name.find("jvp(") != std::string::npos ? kForward : kOther;
}

// A fusion without a name of its own is what its root is.
const std::string& NameInProgram(const Instruction& i) {
  const bool unnamed_fusion = i.opcode() == Opcode::kFusion && i.op_name().empty();
  return unnamed_fusion ? i.called()[0]->root()->op_name() : i.op_name();
}

// It hands values on, at most in another form or from other devices.
bool HandsOn(const Instruction& i) {
  return hlo::OnlyNames(i) || hlo::IsCollective(i.opcode()) || hlo::IsAsyncStart(i.opcode()) ||
         hlo::IsAsyncDone(i.opcode()) || i.opcode() == Opcode::kConvert ||
         i.opcode() == Opcode::kCopy;
}

// The facts of the data flow about every instruction that a device executes.
class DataFlow {
 public:
  explicit DataFlow(const hlo::Module& module)
      : reaches_model_(module),
        of_state_(module),
        of_constants_(module),
        read_by_(static_cast<size_t>(module.next_id())) {
    for (const hlo::Donation& d : hlo::Donations(module))
      donated_.emplace(d.parameter, d.parameter_leaf);
    const std::vector<Computation*> computations = hlo::ControlComputations(module);
    // Callees first: what runs the model inside is part of it.
    for (auto c = computations.rbegin(); c != computations.rend(); ++c) Backwards(**c);
    entry_ = module.entry();
    for (const Computation* c : computations) Forwards(*c);
  }

  bool has_gradient() const { return has_gradient_; }
  bool IsDonated(const Instruction& parameter, int64_t leaf) const {
    return donated_.contains({parameter.attrs().parameter_number(), leaf});
  }
  // The forward or the backward pass needs it.
  bool ReachesModel(const Instruction& i) const { return reaches_model_.contains(i); }
  // Returns the parts of the step that read it, or a value that it forwards.
  Parts ReadBy(const Instruction& i) const { return read_by_[i.id()]; }
  // Nothing but donated arguments and constants went into it.
  bool IsOfState(const Instruction& i) const { return of_state_.contains(i); }

 private:
  void Backwards(const Computation& computation) {
    const std::vector<Instruction*> order = computation.Order();
    bool runs_model = false;
    for (auto it = order.rbegin(); it != order.rend(); ++it) {
      const Instruction& i = **it;
      bool model = PartOf(NameInProgram(i)) != kOther ||
                   std::any_of(i.called().begin(), i.called().end(),
                               [&](const Computation* c) { return runs_model_.contains(c); });
      runs_model = runs_model || model;
      Parts parts = 0;
      for (const Instruction* user : i.users()) {
        model = model || NeedsOperand(*user, i);
        parts |= HandsOn(*user) ? ReadBy(*user) : PartOf(NameInProgram(*user));
      }
      if (model) reaches_model_.insert(i);
      read_by_[i.id()] = parts;
    }
    if (runs_model) runs_model_.insert(&computation);
    has_gradient_ = has_gradient_ || runs_model;
  }

  // Whether the model needs what `user` makes of this operand. A collective of several arrays makes
  // one element of its result of each.
  bool NeedsOperand(const Instruction& user, const Instruction& operand) const {
    const Instruction* result = &user;
    if (hlo::IsAsyncStart(user.opcode()) && user.users().size() == 1) result = user.users()[0];
    const bool variadic = hlo::IsCollective(user.opcode()) && user.operands().size() > 1 &&
                          result->shape().IsTuple();
    if (!variadic || !reaches_model_.contains(user)) return reaches_model_.contains(user);
    return std::any_of(
        result->users().begin(), result->users().end(), [&](const Instruction* element) {
          const bool taken = element->opcode() == Opcode::kGetTupleElement;
          return reaches_model_.contains(*element) &&
                 (!taken || user.operand(element->attrs().tuple_index()) == &operand);
        });
  }

  // The kinds of values that went into a value.
  enum class Source { kConstants, kState, kOther };

  Source SourceOf(const Instruction& i) const {
    if (i.opcode() == Opcode::kParameter) {
      const bool state = i.parent() == entry_ && i.shape().IsArray() && IsDonated(i, 0);
      return state ? Source::kState : Source::kOther;
    }
    if (i.opcode() == Opcode::kGetTupleElement && i.operand(0)->opcode() == Opcode::kParameter) {
      const auto carried = carried_.find(i.parent());
      const bool state = carried != carried_.end() && carried->second[i.attrs().tuple_index()];
      return state ? Source::kState : Source::kOther;
    }
    if (hlo::IsControlFlow(i.opcode())) return Source::kOther;
    Source source = Source::kConstants;
    for (const Instruction* o : i.operands()) {
      if (of_state_.contains(*o)) {
        source = Source::kState;
      } else if (!of_constants_.contains(*o)) {
        return Source::kOther;
      }
    }
    return i.HasSideEffect() ? Source::kOther : source;
  }

  void Forwards(const Computation& computation) {
    for (const Instruction* i : computation.Order()) {
      const Source source = SourceOf(*i);
      if (source == Source::kState) of_state_.insert(*i);
      if (source == Source::kConstants) of_constants_.insert(*i);
      if (i->opcode() != Opcode::kWhile || i->operand(0)->opcode() != Opcode::kTuple) continue;
      // An element that a loop returns unchanged.
      std::vector<bool>& carried = carried_[i->called()[0]];
      const Instruction& initial = *i->operand(0);
      for (size_t n = 0; n < initial.operands().size(); ++n) {
        carried.push_back(of_state_.contains(*initial.operand(n)) &&
                          hlo::ForwardsElement(*i, static_cast<int64_t>(n)));
      }
    }
  }

  class Set {
   public:
    explicit Set(const hlo::Module& module) : in_(static_cast<size_t>(module.next_id())) {}
    bool contains(const Instruction& i) const { return in_[i.id()]; }
    void insert(const Instruction& i) { in_[i.id()] = true; }

   private:
    std::vector<bool> in_;  // by id
  };
  std::set<std::pair<int64_t, int64_t>> donated_;
  Set reaches_model_, of_state_, of_constants_;
  std::vector<Parts> read_by_;                          // by id
  std::unordered_set<const Computation*> runs_model_;  // looked up, never iterated
  std::unordered_map<const Computation*, std::vector<bool>> carried_;  // by body
  const Computation* entry_ = nullptr;
  bool has_gradient_ = false;
};

// The life of an array.
struct Life {
  Parts touched_by = 0;  // that make, change or read it
  bool to_update = false;
  const Instruction* named = nullptr;  // the first of them that the program has a name for
};

const char* OwnerOf(const hlo::LiveBuffer& buffer, const Life& life, const DataFlow& flow) {
  const Instruction& i = *buffer.made_by;
  if (buffer.argument) {
    if (!flow.has_gradient() || !flow.IsDonated(i, buffer.leaf)) return "arguments";
    return flow.ReachesModel(i) ? "parameters" : "optimizer state";
  }
  if (buffer.result) return "results";
  if (i.opcode() == Opcode::kConstant || i.opcode() == Opcode::kIota) return "constants";
  if (!flow.has_gradient()) return "temporaries";
  if (flow.IsOfState(i) && flow.ReachesModel(i)) return "parameters";
  const bool forward = life.touched_by & kForward, backward = life.touched_by & kBackward;
  if (PartOf(NameInProgram(i)) != kBackward && forward && backward) return "saved activations";
  if (!forward && backward && ((life.touched_by & kOther) || life.to_update)) return "gradients";
  return "temporaries";
}

}  // namespace

Ownership FindOwners(const hlo::Module& module, const MemoryPlan& plan) {
  const DataFlow flow(module);
  std::vector<Life> lives(plan.buffers.size());
  for (const hlo::BufferUse& use : plan.uses) {
    Life& life = lives[use.buffer];
    const std::string& name = NameInProgram(*use.by);
    if (!HandsOn(*use.by)) {
      life.touched_by |= PartOf(name);
    } else {
      life.touched_by |= flow.ReadBy(*use.by);
      if (use.writes && !name.empty()) life.touched_by |= PartOf(name) & ~kOther;
    }
    if (use.writes && PartOf(name) == kBackward && (flow.ReadBy(*use.by) & kOther)) {
      life.to_update = true;
    }
    if (life.named == nullptr && !name.empty()) life.named = use.by;
  }
  Ownership ownership;
  std::map<std::string, int32_t> index_of;
  for (size_t n = 0; n < plan.buffers.size(); ++n) {
    const char* owner = OwnerOf(plan.buffers[n], lives[n], flow);
    const auto [it, is_new] =
        index_of.emplace(owner, static_cast<int32_t>(ownership.owners.size()));
    if (is_new) ownership.owners.emplace_back(owner);
    ownership.of_buffer.push_back(it->second);
  }
  ownership.at_peak.reserve(plan.live_at_peak.size());
  for (const int32_t n : plan.live_at_peak) {
    const hlo::LiveBuffer& buffer = plan.buffers[n];
    isa::LiveArray& array = ownership.at_peak.emplace_back();
    array.name = buffer.made_by->name();
    array.owner = ownership.owners[ownership.of_buffer[n]];
    const bool named = !NameInProgram(*buffer.made_by).empty() || lives[n].named == nullptr;
    const Instruction& by = named ? *buffer.made_by : *lives[n].named;
    array.scope = NameInProgram(by);
    array.source = by.SourceLocation();
    array.shape = buffer.array->ToString(/*with_layout=*/true);
    array.bytes = buffer.bytes;
    array.unpadded = buffer.array->ByteSize();
  }
  return ownership;
}

}  // namespace tpusim::buffers
