// Inlining of calls and fusions: depth first with a stack of its own, each instruction
// copied once to where it ends up.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "configs/status_macros.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/hlo/ir/walk.h"

namespace tpusim::hlo {
namespace {

using Wanted = std::function<bool(const Instruction&)>;

constexpr int64_t kMost = int64_t{1} << 62;
int64_t SaturatingAdd(int64_t a, int64_t b) { return a > kMost - b ? kMost : a + b; }
int64_t SaturatingMul(int64_t a, int64_t b) { return b > 0 && a > kMost / b ? kMost : a * b; }

// Calls nested by the thousand would make names as long as the module.
constexpr size_t kMaxOpName = 4096;

// The scope in which the names of a callee's instructions continue: inside a callee op_names start
// anew ("mul" called from "jit(f)/layer") or repeat the call's own name.
struct NameScope {
  std::string own;                 // the call's op_name in its computation
  const pb::OpMetadata* metadata;  // the call's, names continued

  void Continue(Instruction* inlined) const {
    const pb::OpMetadata& inner = inlined->attrs().metadata();
    const std::string& outer = metadata->op_name();
    if (inner.op_name().empty() && inner.stack_frame_id() == 0 && inner.source_file().empty()) {
      *inlined->mutable_attrs().mutable_metadata() = *metadata;
      return;
    }
    if (!outer.empty()) {
      std::string name = outer;
      const std::string& rest = inner.op_name();
      if (!own.empty() && rest.compare(0, own.size(), own) == 0) {
        name += rest.substr(own.size());
      } else if (rest.compare(0, outer.size(), outer) == 0) {
        name = rest;
      } else if (!rest.empty()) {
        name += "/" + rest;
      }
      if (name.size() <= kMaxOpName) {
        inlined->mutable_attrs().mutable_metadata()->set_op_name(std::move(name));
      }
    }
    // JAX puts the source line of a nested jit on its call only.
    if (inner.stack_frame_id() == 0 && inner.source_file().empty()) {
      pb::OpMetadata& to = *inlined->mutable_attrs().mutable_metadata();
      to.set_stack_frame_id(metadata->stack_frame_id());
      to.set_source_file(metadata->source_file());
      to.set_source_line(metadata->source_line());
    }
  }
};

bool MayInline(const Instruction& i) {
  return (i.opcode() == Opcode::kCall || i.opcode() == Opcode::kFusion) && i.called().size() == 1;
}

bool IsWantedCall(const Instruction& i, const Wanted& wanted) { return MayInline(i) && wanted(i); }

// Returns the op_name and source of a call, which continue in its body. A fusion has the name of
// one of its members; each member keeps its own.
const pb::OpMetadata& MetadataOfCall(const Instruction& call) {
  return call.opcode() == Opcode::kCall ? call.attrs().metadata()
                                        : pb::OpMetadata::default_instance();
}

}  // namespace

class Module::Inliner {
 public:
  explicit Inliner(Module* module) : module_(*module) {}

  // Without a plan: only this call, its callee stays.
  Instruction* One(Instruction* call) { return Expand(call); }

  int64_t All(const Wanted& wanted) {
    const std::vector<Computation*> order = module_.PostOrder();
    Plan(order, wanted);
    const int64_t count = static_cast<int64_t>(wanted_.size());
    for (Computation* computation : order) {
      if (!kept_.contains(computation)) continue;
      for (Instruction* call : Walk(computation->instructions())) {
        if (wanted_.contains(call)) Expand(call);
      }
    }
    for (auto& computation : module_.computations_) {
      if (emptied_.contains(computation.get())) module_.Retire(std::move(computation));
    }
    std::erase(module_.computations_, nullptr);
    return count;
  }

 private:
  // One call that is being replaced by the body of its callee.
  struct CallFrame {
    Instruction* call;
    Computation* callee;
    NameScope scope;
    std::vector<Instruction*> body;  // of the callee, operands first
    size_t next = 0;
    bool take_over = false;  // names and callees move instead of being copied
    bool ordered = false;    // control edges of this call or one around it need `inlined`
    std::unordered_map<const Instruction*, Instruction*> map;
    std::unordered_map<const Computation*, Computation*> copies;
    std::unordered_map<const Instruction*, std::vector<Instruction*>> bodies;  // of inner calls
    std::vector<Instruction*> inlined;
    std::vector<Computation*> owned;  // bodies and branches inside
  };

  // Decides which calls are inlined and which computations stay because something else calls them,
  // and counts the copies of each callee.
  void Plan(const std::vector<Computation*>& order, const Wanted& wanted) {
    std::unordered_set<const Computation*> called;
    for (const Computation* computation : order) {
      for (const Instruction* i : computation->instructions()) {
        const bool goes = IsWantedCall(*i, wanted);
        if (goes) wanted_.insert(i);
        for (const Computation* callee : i->called()) {
          called.insert(callee);
          if (!goes) kept_.insert(callee);
        }
      }
    }
    for (const Computation* computation : order) {
      if (computation == module_.entry_ || !called.contains(computation)) {
        kept_.insert(computation);
      }
    }
    for (auto it = order.rbegin(); it != order.rend(); ++it) {
      const int64_t times = SaturatingAdd(kept_.contains(*it) ? 1 : 0, copies_left_[*it]);
      for (const Instruction* i : (*it)->instructions()) {
        if (!wanted_.contains(i)) continue;
        int64_t& left = copies_left_[i->called()[0]];
        left = SaturatingAdd(left, times);
      }
    }
  }

  CallFrame Open(Instruction* call, std::string own, bool ordered) {
    TPUSIM_CHECK(MayInline(*call), call->name_);
    CallFrame frame;
    frame.call = call;
    frame.callee = call->called_[0];
    frame.scope = {std::move(own), &MetadataOfCall(*call)};
    frame.body = frame.callee->PostOrder();
    frame.map.reserve(frame.body.size());
    frame.ordered = ordered || call->has_control_edges();
    const auto left = copies_left_.find(frame.callee);
    if (left != copies_left_.end()) {
      frame.take_over = --left->second == 0 && !kept_.contains(frame.callee);
    }
    return frame;
  }

  // Copies one instruction of the callee; true if it is a call to go into.
  bool Copy(Instruction* from, CallFrame* frame) {
    const Instruction* call = frame->call;
    if (from->opcode_ == Opcode::kParameter) {
      const int64_t number = from->attrs().parameter_number();
      TPUSIM_CHECK(number >= 0 && number < static_cast<int64_t>(call->operands_.size()),
                   call->name_);
      frame->map[from] = call->operands_[number];
      return false;
    }
    std::vector<Instruction*> operands;
    operands.reserve(from->operands_.size());
    for (const Instruction* operand : from->operands_) operands.push_back(frame->map.at(operand));
    if (frame->take_over) module_.names_.erase(from->name_);
    Instruction* to =
        call->parent_->Add(from->opcode_, from->shape_, std::move(operands), from->name_, from);
    const bool goes_on = wanted_.contains(from);
    // What is taken over is not needed twice.
    if (frame->take_over && !goes_on) from->attrs_.reset();
    frame->scope.Continue(to);
    for (const Instruction* before : from->control_predecessors_) {
      if (before->opcode_ == Opcode::kParameter) continue;
      const auto body = frame->bodies.find(before);
      if (body == frame->bodies.end()) {
        to->AddControlPredecessor(frame->map.at(before));
      } else {
        for (Instruction* inner : body->second) to->AddControlPredecessor(inner);
      }
    }
    frame->map[from] = to;
    if (goes_on) {
      to->set_called(from->called_);
      return true;
    }
    const bool owns = OwnsCallees(from->opcode_);
    std::vector<Computation*> to_call;
    for (Computation* called : from->called_) {
      if (owns && !frame->take_over && !frame->copies.contains(called)) {
        frame->copies[called] = module_.CloneComputation(*called);
      }
      to_call.push_back(owns && !frame->take_over ? frame->copies.at(called) : called);
      if (owns) frame->owned.push_back(to_call.back());
    }
    if (!to_call.empty()) to->set_called(std::move(to_call));
    if (frame->ordered) frame->inlined.push_back(to);
    return false;
  }

  // The call goes; its value is `Close`'s result.
  Instruction* Close(CallFrame* frame) {
    Instruction* call = frame->call;
    Computation* caller = call->parent_;
    if (!frame->owned.empty()) {
      std::vector<Computation*> nested;
      TPUSIM_CHECK(CalleesFirst(frame->owned, &nested),
                   "computations call each other at " + frame->callee->name_);
      for (Computation* computation : nested) {
        for (Instruction* i : computation->instructions()) frame->scope.Continue(i);
      }
    }
    // What had to come before the call comes before all of its body; what had to
    // come after it comes after all of it.
    Instruction* result = frame->map.at(frame->callee->root_);
    for (Instruction* before : call->control_predecessors_) {
      for (Instruction* to : frame->inlined) to->AddControlPredecessor(before);
    }
    for (Instruction* after : std::exchange(call->control_successors_, {})) {
      std::erase(after->control_predecessors_, call);
      after->EdgesChanged();
      for (Instruction* to : frame->inlined) after->AddControlPredecessor(to);
    }
    if (frame->take_over) {
      emptied_.insert(frame->callee);
    }
    caller->set_schedule({});
    call->ReplaceAllUsesWith(result);
    caller->Remove(call);
    return result;
  }

  Instruction* Expand(Instruction* call) {
    std::vector<std::unique_ptr<CallFrame>> stack;
    stack.push_back(
        std::make_unique<CallFrame>(Open(call, MetadataOfCall(*call).op_name(), false)));
    while (true) {
      CallFrame& top = *stack.back();
      if (top.next < top.body.size()) {
        Instruction* from = top.body[top.next++];
        if (Copy(from, &top)) {
          // A call without a name of its own goes by the name of the one around it.
          const std::string& own = from->op_name().empty() ? top.scope.own : from->op_name();
          const bool ordered = top.ordered || !from->control_successors_.empty();
          stack.push_back(std::make_unique<CallFrame>(Open(top.map.at(from), own, ordered)));
        }
        continue;
      }
      Instruction* result = Close(&top);
      const std::unique_ptr<CallFrame> done = std::move(stack.back());
      stack.pop_back();
      if (stack.empty()) return result;
      CallFrame& outer = *stack.back();
      const Instruction* from = outer.body[outer.next - 1];
      outer.map[from] = result;
      if (outer.ordered) {
        outer.inlined.insert(outer.inlined.end(), done->inlined.begin(), done->inlined.end());
      }
      if (!from->control_successors_.empty()) outer.bodies[from] = std::move(done->inlined);
    }
  }

  Module& module_;
  std::unordered_set<const Instruction*> wanted_;  // looked up, never iterated
  std::unordered_set<const Computation*> kept_;
  std::unordered_map<const Computation*, int64_t> copies_left_;
  std::unordered_set<const Computation*> emptied_;
};

Instruction* Module::InlineCall(Instruction* call) { return Inliner(this).One(call); }

int64_t Module::InlineCalls(const Wanted& wanted) { return Inliner(this).All(wanted); }

int64_t Module::InlinedSize(const Wanted& wanted) const {
  std::unordered_map<const Computation*, int64_t> copies;
  const std::vector<Computation*> order = PostOrder();
  int64_t size = 0;
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    const int64_t times = std::max<int64_t>(1, copies[*it]);
    size = SaturatingAdd(size, SaturatingMul(times, static_cast<int64_t>((*it)->size())));
    for (const Instruction* i : (*it)->instructions()) {
      // Loop bodies and branches are copied with what they are in.
      if (!OwnsCallees(i->opcode()) && !IsWantedCall(*i, wanted)) continue;
      for (const Computation* callee : i->called()) {
        copies[callee] = SaturatingAdd(copies[callee], times);
      }
    }
  }
  return size;
}

}  // namespace tpusim::hlo
