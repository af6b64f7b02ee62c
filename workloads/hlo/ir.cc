#include "workloads/hlo/ir.h"

#include <algorithm>
#include <utility>

#include "configs/status_macros.h"
#include "fmt/format.h"

namespace tpusim::hlo {
namespace {

// Prefix of computation names in the set of taken names.
constexpr std::string_view kComputations = "computation ";

enum class Visited : char { kNo, kOpen, kDone };

// Depth-first, dependencies first, without recursion. `roots` are visited in
// order; `next(node, i)` is the i-th dependency or nullptr behind the last;
// `visited(node)` is where the node's state is kept. False: there is a cycle.
template <typename Node, typename Next, typename State>
bool DepthFirst(const std::vector<Node*>& roots, Next next, State visited,
                std::vector<Node*>* order) {
  std::vector<std::pair<Node*, size_t>> stack;
  for (Node* root : roots) {
    if (visited(root) != Visited::kNo) continue;
    visited(root) = Visited::kOpen;
    stack.emplace_back(root, 0);
    while (!stack.empty()) {
      auto& [node, index] = stack.back();
      Node* dependency = next(*node, index++);
      if (dependency == nullptr) {
        visited(node) = Visited::kDone;
        order->push_back(node);
        stack.pop_back();
        continue;
      }
      Visited& state = visited(dependency);
      if (state == Visited::kOpen) return false;
      if (state == Visited::kDone) continue;
      state = Visited::kOpen;
      stack.emplace_back(dependency, 0);
    }
  }
  return true;
}

// The i-th computation that `computation` calls, over its instructions; `flat`
// is filled on first use.
std::vector<Computation*> CalledBy(const Computation& computation) {
  std::vector<Computation*> called;
  for (const Instruction* instruction : computation.instructions()) {
    called.insert(called.end(), instruction->called().begin(), instruction->called().end());
  }
  return called;
}

bool CallOrder(const std::vector<Computation*>& roots, std::vector<Computation*>* order) {
  std::unordered_map<const Computation*, std::vector<Computation*>> called;
  std::unordered_map<const Computation*, Visited> visited;
  return DepthFirst<Computation>(
      roots,
      [&](const Computation& computation, size_t i) -> Computation* {
        auto it = called.find(&computation);
        if (it == called.end()) it = called.emplace(&computation, CalledBy(computation)).first;
        return i < it->second.size() ? it->second[i] : nullptr;
      },
      [&](const Computation* computation) -> Visited& { return visited[computation]; }, order);
}

bool SideEffectOf(const Instruction& instruction) {
  switch (instruction.opcode()) {
    case Opcode::kSend:
    case Opcode::kSendDone:
    case Opcode::kRecv:
    case Opcode::kRecvDone:
    case Opcode::kInfeed:
    case Opcode::kOutfeed:
    case Opcode::kRng:
    case Opcode::kRngGetAndUpdateState:
      return true;
    case Opcode::kCustomCall:
      return instruction.attrs().custom_call_has_side_effect();
    default:
      return false;
  }
}

}  // namespace

// ---- Instruction -----------------------------------------------------------

void Instruction::ReplaceOperand(size_t i, Instruction* with) {
  TPUSIM_CHECK(i < operands_.size(), name_);
  TPUSIM_CHECK(with->parent_ == parent_, with->name_ + " is not in the computation of " + name_);
  Instruction* old = operands_[i];
  if (old == with) return;
  const bool is_user = std::find(operands_.begin(), operands_.end(), with) != operands_.end();
  operands_[i] = with;
  if (std::find(operands_.begin(), operands_.end(), old) == operands_.end()) {
    std::erase(old->users_, this);
  }
  if (!is_user) with->users_.push_back(this);
}

void Instruction::ReplaceAllUsesWith(Instruction* with) {
  TPUSIM_CHECK(with->parent_ == parent_, with->name_ + " is not in the computation of " + name_);
  if (with == this) return;
  const std::vector<Instruction*> users = std::exchange(users_, {});
  for (Instruction* user : users) {
    if (user == with) {  // `with` was computed from this
      users_.push_back(user);
      continue;
    }
    auto& operands = user->operands_;
    const bool is_user = std::find(operands.begin(), operands.end(), with) != operands.end();
    std::replace(operands.begin(), operands.end(), this, with);
    if (!is_user) with->users_.push_back(user);
  }
  if (parent_->root() == this) parent_->set_root(with);
}

void Instruction::AddControlPredecessor(Instruction* before) {
  const auto& list = control_predecessors_;
  if (std::find(list.begin(), list.end(), before) != list.end()) return;
  control_predecessors_.push_back(before);
  ++before->num_control_successors_;
}

bool Instruction::IsRoot() const { return parent_ != nullptr && parent_->root() == this; }

bool Instruction::HasSideEffect() const {
  if (SideEffectOf(*this)) return true;
  if (called_.empty()) return false;
  std::vector<Computation*> reached;
  if (!CallOrder(called_, &reached)) return true;  // a cycle is the verifier's business
  for (const Computation* computation : reached) {
    for (const Instruction* instruction : computation->instructions()) {
      if (SideEffectOf(*instruction)) return true;
    }
  }
  return false;
}

std::string Instruction::SourceLocation() const {
  const pb::OpMetadata& metadata = attrs_.metadata();
  if (!metadata.source_file().empty()) {
    return fmt::format("{}:{}", metadata.source_file(), metadata.source_line());
  }
  const int frame_id = metadata.stack_frame_id();
  if (frame_id <= 0 || parent_ == nullptr || parent_->parent() == nullptr) return "";
  // Ids are 1-based; 0 is "none", and a file may lie about them.
  const pb::StackFrameIndexProto& index = parent_->parent()->fields().stack_frame_index();
  if (frame_id > index.stack_frames_size()) return "";
  const int location_id = index.stack_frames(frame_id - 1).file_location_id();
  if (location_id <= 0 || location_id > index.file_locations_size()) return "";
  const auto& location = index.file_locations(location_id - 1);
  if (location.file_name_id() <= 0 || location.file_name_id() > index.file_names_size()) return "";
  return fmt::format("{}:{}", index.file_names(location.file_name_id() - 1), location.line());
}

std::string Instruction::Describe() const {
  const std::string source = SourceLocation();
  if (op_name().empty() && source.empty()) return name_;
  if (op_name().empty() || source.empty())
    return fmt::format("{} ({}{})", name_, op_name(), source);
  return fmt::format("{} ({}, {})", name_, op_name(), source);
}

// ---- Computation -----------------------------------------------------------

Instruction* Computation::Add(Opcode opcode, Shape shape, std::vector<Instruction*> operands,
                              std::string_view name_hint, const Instruction* like) {
  auto owned = std::make_unique<Instruction>();
  Instruction* instruction = owned.get();
  if (name_hint.empty()) name_hint = OpcodeName(opcode);
  instruction->opcode_ = opcode;
  instruction->name_ = parent_->UniqueName(name_hint);
  instruction->id_ = parent_->next_id_++;
  instruction->shape_ = std::move(shape);
  instruction->parent_ = this;
  instruction->operands_ = std::move(operands);
  if (like != nullptr && like->opcode_ == opcode) {
    instruction->attrs_ = like->attrs_;
  } else if (like != nullptr && like->attrs_.has_metadata()) {
    *instruction->attrs_.mutable_metadata() = like->attrs_.metadata();
  }
  for (Instruction* operand : instruction->operands_) {
    TPUSIM_CHECK(operand != nullptr && operand->parent_ == this,
                 fmt::format("operand of {} is not in {}", instruction->name_, name_));
    // An operand that occurs twice has just been told.
    auto& users = operand->users_;
    if (users.empty() || users.back() != instruction) users.push_back(instruction);
  }
  instructions_.push_back(std::move(owned));
  return instruction;
}

Instruction* Computation::AddParameter(int64_t number, Shape shape, std::string_view name_hint) {
  Instruction* parameter =
      Add(Opcode::kParameter, std::move(shape), {}, name_hint.empty() ? "param" : name_hint);
  parameter->attrs_.set_parameter_number(number);
  return parameter;
}

void Computation::Remove(Instruction* instruction) {
  TPUSIM_CHECK(instruction->parent_ == this, instruction->name_);
  TPUSIM_CHECK(instruction->users_.empty(), instruction->name_ + " still has users");
  TPUSIM_CHECK(instruction != root_, instruction->name_ + " is the root");
  TPUSIM_CHECK(instruction->num_control_successors_ == 0,
               instruction->name_ + " still has control successors");
  for (Instruction* operand : instruction->operands_) std::erase(operand->users_, instruction);
  for (Instruction* before : instruction->control_predecessors_) --before->num_control_successors_;
  std::erase(schedule_, instruction);
  // Ids grow in creation order.
  const auto it = std::lower_bound(
      instructions_.begin(), instructions_.end(), instruction->id_,
      [](const std::unique_ptr<Instruction>& a, int64_t id) { return a->id_ < id; });
  TPUSIM_CHECK(it != instructions_.end() && it->get() == instruction, instruction->name_);
  instructions_.erase(it);
}

int64_t Computation::RemoveDead() {
  std::unordered_set<const Instruction*> live;
  std::vector<Instruction*> work;
  const auto mark = [&](Instruction* instruction) {
    if (live.insert(instruction).second) work.push_back(instruction);
  };
  for (const auto& instruction : instructions_) {
    if (instruction.get() == root_ || instruction->opcode_ == Opcode::kParameter ||
        instruction->HasSideEffect()) {
      mark(instruction.get());
    }
  }
  while (!work.empty()) {
    Instruction* instruction = work.back();
    work.pop_back();
    for (Instruction* operand : instruction->operands_) mark(operand);
    for (Instruction* before : instruction->control_predecessors_) mark(before);
  }
  const auto dead = [&](const Instruction* instruction) { return !live.contains(instruction); };
  const size_t before = instructions_.size();
  if (live.size() == before) return 0;
  for (const auto& instruction : instructions_) {
    if (dead(instruction.get())) {
      for (Instruction* p : instruction->control_predecessors_) --p->num_control_successors_;
    } else {
      std::erase_if(instruction->users_, dead);
    }
  }
  std::erase_if(schedule_, dead);
  std::erase_if(instructions_, [&](const auto& instruction) { return dead(instruction.get()); });
  return static_cast<int64_t>(before - instructions_.size());
}

std::vector<Instruction*> Computation::instructions() const {
  std::vector<Instruction*> result;
  result.reserve(instructions_.size());
  for (const auto& instruction : instructions_) result.push_back(instruction.get());
  return result;
}

bool Computation::TopologicalOrder(std::vector<Instruction*>* order) const {
  order->reserve(instructions_.size());
  const auto next = [](const Instruction& instruction, size_t i) -> Instruction* {
    const auto& operands = instruction.operands();
    if (i < operands.size()) return operands[i];
    const auto& control = instruction.control_predecessors();
    return i - operands.size() < control.size() ? control[i - operands.size()] : nullptr;
  };
  // Ids grow in creation order; where they are dense, a table beats a hash.
  const int64_t first = instructions_.empty() ? 0 : instructions_.front()->id_;
  const int64_t span = instructions_.empty() ? 0 : instructions_.back()->id_ - first + 1;
  if (span <= 64 * static_cast<int64_t>(instructions_.size())) {
    std::vector<Visited> visited(span, Visited::kNo);
    return DepthFirst<Instruction>(
        instructions(), next,
        [&](const Instruction* instruction) -> Visited& {
          return visited[instruction->id_ - first];
        },
        order);
  }
  std::unordered_map<const Instruction*, Visited> visited;
  visited.reserve(instructions_.size());
  return DepthFirst<Instruction>(
      instructions(), next,
      [&](const Instruction* instruction) -> Visited& { return visited[instruction]; }, order);
}

std::vector<Instruction*> Computation::PostOrder() const {
  std::vector<Instruction*> order;
  TPUSIM_CHECK(TopologicalOrder(&order), "cycle in computation " + name_);
  return order;
}

std::vector<Instruction*> Computation::parameters() const {
  std::vector<Instruction*> result;
  for (const auto& instruction : instructions_) {
    if (instruction->opcode_ == Opcode::kParameter) result.push_back(instruction.get());
  }
  std::stable_sort(result.begin(), result.end(), [](const Instruction* a, const Instruction* b) {
    return a->attrs_.parameter_number() < b->attrs_.parameter_number();
  });
  return result;
}

std::vector<Instruction*> Computation::Order() const {
  return schedule_.empty() ? PostOrder() : schedule_;
}

// ---- Module ----------------------------------------------------------------

Module::Module(std::string name) : name_(std::move(name)) {}

Computation* Module::AddComputation(std::string_view name_hint) {
  auto computation = std::make_unique<Computation>();
  computation->name_ = UniqueNameIn(kComputations, name_hint.empty() ? "computation" : name_hint);
  computation->parent_ = this;
  computations_.push_back(std::move(computation));
  return computations_.back().get();
}

std::vector<Computation*> Module::computations() const {
  std::vector<Computation*> result;
  result.reserve(computations_.size());
  for (const auto& computation : computations_) result.push_back(computation.get());
  return result;
}

bool Module::TopologicalOrder(std::vector<Computation*>* order) const {
  return CallOrder(computations(), order);
}

std::vector<Computation*> Module::PostOrder() const {
  std::vector<Computation*> order;
  TPUSIM_CHECK(TopologicalOrder(&order), "computations of " + name_ + " call each other");
  return order;
}

void Module::RemoveUnreachable() {
  TPUSIM_CHECK(entry_ != nullptr, "no entry computation");
  std::vector<Computation*> order;
  TPUSIM_CHECK(CallOrder({entry_}, &order), "computations of " + name_ + " call each other");
  const std::unordered_set<const Computation*> reachable(order.begin(), order.end());
  std::erase_if(computations_,
                [&](const auto& computation) { return !reachable.contains(computation.get()); });
}

std::string Module::UniqueNameIn(std::string_view space, std::string_view hint) {
  const auto take = [&](std::string_view name) {
    return names_.insert(fmt::format("{}{}", space, name)).second;
  };
  std::string name(hint);
  if (take(name)) return name;
  // "add.3" counts on as "add.4", "add.5", ...
  const size_t dot = hint.rfind('.');
  if (dot != std::string_view::npos && dot + 1 < hint.size() &&
      hint.find_first_not_of("0123456789", dot + 1) == std::string_view::npos) {
    hint = hint.substr(0, dot);
  }
  int64_t& suffix = next_suffix_[fmt::format("{}{}", space, hint)];
  do {
    name = fmt::format("{}.{}", hint, ++suffix);
  } while (!take(name));
  return name;
}

Computation* Module::CopyInto(const Computation& source, std::string name,
                              const std::unordered_map<const Computation*, Computation*>& copies,
                              bool keep_names) {
  auto owned = std::make_unique<Computation>();
  Computation* copy = owned.get();
  computations_.push_back(std::move(owned));
  copy->name_ = std::move(name);
  copy->parent_ = this;
  copy->attrs_ = source.attrs_;
  std::unordered_map<const Instruction*, Instruction*> map;
  map.reserve(source.instructions_.size());
  // Instructions first, edges after: creation order may have users first.
  for (const auto& from : source.instructions_) {
    auto to = std::make_unique<Instruction>();
    to->opcode_ = from->opcode_;
    to->name_ = keep_names ? from->name_ : UniqueName(from->name_);
    to->id_ = keep_names ? from->id_ : next_id_++;
    to->shape_ = from->shape_;
    to->parent_ = copy;
    to->attrs_ = from->attrs_;
    to->num_control_successors_ = from->num_control_successors_;
    for (const Computation* called : from->called_) to->called_.push_back(copies.at(called));
    map.emplace(from.get(), to.get());
    copy->instructions_.push_back(std::move(to));
  }
  const auto mapped = [&](const std::vector<Instruction*>& list) {
    std::vector<Instruction*> result;
    result.reserve(list.size());
    for (const Instruction* instruction : list) result.push_back(map.at(instruction));
    return result;
  };
  for (const auto& from : source.instructions_) {
    Instruction* to = map.at(from.get());
    to->operands_ = mapped(from->operands_);
    to->users_ = mapped(from->users_);
    to->control_predecessors_ = mapped(from->control_predecessors_);
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
  std::sort(clone->computations_.begin(), clone->computations_.end(),
            [&](const auto& a, const auto& b) { return position[a.get()] < position[b.get()]; });
  if (entry_ != nullptr) clone->entry_ = copies.at(entry_);
  return clone;
}

Computation* Module::CloneComputation(const Computation& source, std::string_view name_hint) {
  std::vector<Computation*> order;
  TPUSIM_CHECK(CallOrder({const_cast<Computation*>(&source)}, &order),
               "computations call each other at " + source.name_);
  std::unordered_map<const Computation*, Computation*> copies;
  for (const Computation* computation : order) {
    const bool top = computation == &source && !name_hint.empty();
    copies[computation] = CopyInto(
        *computation,
        UniqueNameIn(kComputations, top ? name_hint : std::string_view(computation->name_)), copies,
        false);
  }
  return copies.at(&source);
}

namespace {

// Inside a callee op_names start anew: "mul" called from "jit(f)/layer". What has
// no source line of its own gets the call's.
void ContinueMetadata(const pb::OpMetadata& caller, Instruction* inlined) {
  pb::OpMetadata& metadata = *inlined->mutable_attrs().mutable_metadata();
  const bool nowhere = metadata.stack_frame_id() == 0 && metadata.source_file().empty();
  if (nowhere && metadata.op_name().empty()) {
    metadata = caller;
    return;
  }
  const std::string& outer = caller.op_name();
  if (metadata.op_name().empty()) {
    metadata.set_op_name(outer);
  } else if (!outer.empty() && metadata.op_name().compare(0, outer.size(), outer) != 0) {
    metadata.set_op_name(outer + "/" + metadata.op_name());
  }
  if (nowhere) {
    metadata.set_stack_frame_id(caller.stack_frame_id());
    metadata.set_source_file(caller.source_file());
    metadata.set_source_line(caller.source_line());
  }
}

// Whoever rewrites what these call expects it to have one caller.
bool OwnsCallees(Opcode opcode) {
  switch (opcode) {
    case Opcode::kWhile:
    case Opcode::kConditional:
    case Opcode::kCall:
    case Opcode::kFusion:
    case Opcode::kAsyncStart:
      return true;
    default:
      return false;
  }
}

}  // namespace

// With `take_over` the callee gives away its names and callees, which is only
// right if nobody else calls it and it is removed afterwards.
Instruction* Module::Inline(Instruction* call, bool take_over) {
  TPUSIM_CHECK(call->opcode_ == Opcode::kCall && call->called_.size() == 1, call->name_);
  Computation* caller = call->parent_;
  const Computation& callee = *call->called_[0];
  std::unordered_map<const Computation*, Computation*> copies;
  std::unordered_map<const Instruction*, Instruction*> map;
  std::vector<Instruction*> inlined;
  std::vector<Computation*> owned;  // bodies and branches inside
  for (const Instruction* from : callee.PostOrder()) {
    if (from->opcode_ == Opcode::kParameter) {
      const int64_t number = from->attrs_.parameter_number();
      TPUSIM_CHECK(number >= 0 && number < static_cast<int64_t>(call->operands_.size()),
                   call->name_);
      map[from] = call->operands_[number];
      continue;
    }
    std::vector<Instruction*> operands;
    operands.reserve(from->operands_.size());
    for (const Instruction* operand : from->operands_) operands.push_back(map.at(operand));
    if (take_over) names_.erase(from->name_);
    Instruction* to =
        caller->Add(from->opcode_, from->shape_, std::move(operands), from->name_, from);
    ContinueMetadata(call->attrs_.metadata(), to);
    for (const Instruction* before : from->control_predecessors_) {
      Instruction* mapped = map.at(before);
      if (before->opcode_ != Opcode::kParameter) to->AddControlPredecessor(mapped);
    }
    for (Computation* called : from->called_) {
      const bool copy = !take_over && OwnsCallees(from->opcode_);
      if (copy && !copies.contains(called)) copies[called] = CloneComputation(*called);
      to->called_.push_back(copy ? copies.at(called) : called);
      if (OwnsCallees(from->opcode_)) owned.push_back(to->called_.back());
    }
    map[from] = to;
    inlined.push_back(to);
  }
  std::vector<Computation*> nested;
  TPUSIM_CHECK(CallOrder(owned, &nested), "computations call each other at " + callee.name_);
  for (Computation* computation : nested) {
    for (Instruction* i : computation->instructions()) {
      ContinueMetadata(call->attrs_.metadata(), i);
    }
  }
  // What had to come before the call comes before all of its body; what had to
  // come after it comes after its result.
  Instruction* result = map.at(callee.root());
  for (Instruction* before : call->control_predecessors_) {
    for (Instruction* to : inlined) to->AddControlPredecessor(before);
  }
  if (call->num_control_successors_ > 0) {
    for (const auto& after : caller->instructions_) {
      auto& list = after->control_predecessors_;
      if (std::erase(list, call) == 0) continue;
      --call->num_control_successors_;
      for (Instruction* to : inlined) after->AddControlPredecessor(to);
    }
  }
  caller->schedule_.clear();
  call->ReplaceAllUsesWith(result);
  caller->Remove(call);
  return result;
}

Instruction* Module::InlineCall(Instruction* call) { return Inline(call, false); }

int64_t Module::InlineCalls(const std::function<bool(const Instruction&)>& wanted) {
  // Callees first, so that what is inlined holds no wanted call any more.
  const std::vector<Computation*> order = PostOrder();
  std::unordered_map<const Computation*, int64_t> callers;
  for (const Computation* computation : order) {
    for (const Computation* called : CalledBy(*computation)) ++callers[called];
  }
  std::unordered_set<const Computation*> emptied;
  int64_t count = 0;
  for (Computation* computation : order) {
    for (Instruction* call : computation->PostOrder()) {
      if (call->opcode_ != Opcode::kCall || !wanted(*call)) continue;
      Computation* callee = call->called_[0];
      const bool last = --callers[callee] == 0 && callee != entry_;
      Inline(call, last);
      if (last) emptied.insert(callee);
      ++count;
    }
  }
  std::erase_if(computations_, [&](const auto& c) { return emptied.contains(c.get()); });
  return count;
}

}  // namespace tpusim::hlo
