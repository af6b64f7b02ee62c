#include "workloads/hlo/ir/ir.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

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

// Every computation that `computation` calls, over its instructions.
std::vector<Computation*> CalledBy(const Computation& computation) {
  std::vector<Computation*> called;
  for (const Instruction* instruction : computation.instructions()) {
    called.insert(called.end(), instruction->called().begin(), instruction->called().end());
  }
  return called;
}

bool SideEffectOf(const Instruction& instruction) {
  return (OpcodeTraitsOf(instruction.opcode()) & kSideEffect) != 0 ||
         (instruction.opcode() == Opcode::kCustomCall &&
          instruction.attrs().custom_call_has_side_effect());
}

// Which computations have side effects, those that they call included; each is
// looked at once.
class SideEffects {
 public:
  bool Of(const Instruction& instruction) {
    if (SideEffectOf(instruction)) return true;
    return std::any_of(instruction.called().begin(), instruction.called().end(),
                       [&](Computation* called) { return Of(called); });
  }

 private:
  bool Of(Computation* computation) {
    const auto it = known_.find(computation);
    if (it != known_.end()) return it->second;
    std::vector<Computation*> reached;
    if (!CalleesFirst({computation}, &reached)) return true;  // a cycle is the verifier's business
    for (const Computation* callee : reached) {
      if (known_.contains(callee)) continue;
      bool any = false;
      for (const Instruction* inner : callee->instructions()) {
        any = any || SideEffectOf(*inner);
        for (const Computation* called : inner->called()) any = any || known_.at(called);
      }
      known_[callee] = any;
    }
    return known_.at(computation);
  }

  std::unordered_map<const Computation*, bool> known_;
};

// The last ones go first more often than not.
void EraseUser(std::vector<Instruction*>& users, const Instruction* user) {
  const auto it = std::find(users.rbegin(), users.rend(), user);
  if (it != users.rend()) users.erase(std::next(it).base());
}

}  // namespace

bool CalleesFirst(const std::vector<Computation*>& roots, std::vector<Computation*>* order) {
  struct Seen {
    Visited visited = Visited::kNo;
    std::vector<Computation*> called;
  };
  std::unordered_map<const Computation*, Seen> seen;
  return DepthFirst<Computation>(
      roots,
      [&](const Computation& computation, size_t i) -> Computation* {
        std::vector<Computation*>& called = seen[&computation].called;
        if (i == 0) called = CalledBy(computation);
        return i < called.size() ? called[i] : nullptr;
      },
      [&](const Computation* computation) -> Visited& { return seen[computation].visited; }, order);
}

// ---- Instruction -----------------------------------------------------------

void Instruction::AskedAfterRemoval() const {
  CheckFailed(__FILE__, __LINE__, "!removed()",
              "instruction " + name_ + " was removed, and something still asks it");
}

void Instruction::ReplaceOperand(size_t i, Instruction* with) {
  TPUSIM_CHECK(i < Live().operands_.size(), name_);
  TPUSIM_CHECK(with->parent() == parent_, with->name_ + " is not in the computation of " + name_);
  Instruction* old = operands_[i];
  if (old == with) return;
  const bool is_user = std::ranges::find(operands_, with) != operands_.end();
  operands_[i] = with;
  if (std::ranges::find(operands_, old) == operands_.end()) {
    EraseUser(old->users_, this);
  }
  if (!is_user) with->users_.push_back(this);
}

void Instruction::ReplaceAllUsesWith(Instruction* with) {
  TPUSIM_CHECK(with->parent() == parent(), with->name_ + " is not in the computation of " + name_);
  if (with == this) return;
  const std::vector<Instruction*> users = std::exchange(users_, {});
  for (Instruction* user : users) {
    if (user == with) {  // `with` was computed from this
      users_.push_back(user);
      continue;
    }
    auto& operands = user->operands_;
    const bool is_user =
        !with->users_.empty() && std::ranges::find(operands, with) != operands.end();
    std::ranges::replace(operands, this, with);
    if (!is_user) with->users_.push_back(user);
  }
  if (parent_->root() == this) parent_->set_root(with);
}

void Instruction::AddControlPredecessor(Instruction* before) {
  const auto& list = control_predecessors();
  if (std::ranges::find(list, before) != list.end()) return;
  control_predecessors_.push_back(before);
  before->Live().control_successors_.push_back(this);
}

void Instruction::MoveControlTo(Instruction* first, Instruction* last) {
  for (Instruction* before : std::exchange(Live().control_predecessors_, {})) {
    std::erase(before->control_successors_, this);
    first->AddControlPredecessor(before);
  }
  for (Instruction* after : std::exchange(control_successors_, {})) {
    std::erase(after->control_predecessors_, this);
    after->AddControlPredecessor(last);
  }
}

bool Instruction::IsRoot() const { return parent() != nullptr && parent_->root() == this; }

bool Instruction::HasSideEffect() const {
  if (called().empty()) return SideEffectOf(*this);
  return SideEffects().Of(*this);
}

pb::HloInstructionProto& Instruction::mutable_attrs() {
  if (Live().attrs_ == nullptr) {
    attrs_ = std::make_shared<Attributes>();
  } else if (attrs_.use_count() > 1) {
    attrs_ = std::make_shared<Attributes>(Attributes{attrs_->proto, std::nullopt});
  }
  attrs_->bytes.reset();
  return attrs_->proto;
}

void Instruction::set_attrs(pb::HloInstructionProto attrs) {
  // An empty message takes several hundred bytes, more than the rest of an instruction.
  Live().attrs_ = attrs.ByteSizeLong() == 0
                      ? nullptr
                      : std::make_shared<Attributes>(Attributes{std::move(attrs), std::nullopt});
}

const std::string& Instruction::AttributeBytes() const {
  static const std::string none;
  if (Live().attrs_ == nullptr) return none;
  std::optional<std::string>& bytes = attrs_->bytes;
  if (!bytes) {
    pb::HloInstructionProto rest = attrs_->proto;
    rest.clear_metadata();
    rest.clear_sharding();
    rest.clear_frontend_attributes();
    bytes.emplace();
    google::protobuf::io::StringOutputStream stream(&*bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    rest.SerializeToCodedStream(&coded);
  }
  return *bytes;
}

std::string Instruction::SourceLocation() const {
  const pb::OpMetadata& metadata = attrs().metadata();
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
  const std::string& file = index.file_names(location.file_name_id() - 1);
  return file.empty() ? "" : fmt::format("{}:{}", file, location.line());
}

std::string Instruction::Describe() const {
  const std::string source = SourceLocation();
  if (op_name().empty() && source.empty()) return name_;
  if (op_name().empty() || source.empty())
    return fmt::format("{} ({}{})", name_, op_name(), source);
  return fmt::format("{} ({}, {})", name_, op_name(), source);
}

// ---- Computation -----------------------------------------------------------

void Computation::AskedAfterRemoval() const {
  CheckFailed(__FILE__, __LINE__, "!removed()",
              "computation " + name_ + " was removed, and something still asks it");
}

void Computation::set_root(Instruction* root) {
  TPUSIM_CHECK(root == nullptr || root->parent() == this, "the root of " + name());
  Live().root_ = root;
}

Instruction* Computation::Add(Opcode opcode, Shape shape, std::vector<Instruction*> operands,
                              std::string_view name_hint, const Instruction* like) {
  auto owned = std::make_unique<Instruction>();
  Instruction* instruction = owned.get();
  Live();
  if (name_hint.empty()) name_hint = OpcodeName(opcode);
  instruction->opcode_ = opcode;
  instruction->name_ = parent_->UniqueName(name_hint);
  instruction->id_ = parent_->next_id_++;
  instruction->shape_ = std::move(shape);
  instruction->parent_ = this;
  instruction->operands_ = std::move(operands);
  if (like != nullptr && like->opcode() == opcode) {
    instruction->attrs_ = like->attrs_;
  } else if (like != nullptr && like->attrs().has_metadata()) {
    *instruction->mutable_attrs().mutable_metadata() = like->attrs().metadata();
  }
  for (Instruction* operand : instruction->operands_) {
    TPUSIM_CHECK(operand != nullptr && operand->parent() == this,
                 fmt::format("operand of {} is not in {}", instruction->name_, name_));
    // An operand that occurs twice has just been told.
    auto& users = operand->users_;
    if (users.empty() || users.back() != instruction) users.push_back(instruction);
  }
  Append(std::move(owned));
  return instruction;
}

void Computation::Append(std::unique_ptr<Instruction> instruction) {
  instruction->slot_ = instructions_.size();
  instructions_.push_back(std::move(instruction));
  ++live_;
}

void Computation::Compact() {
  std::erase(instructions_, nullptr);
  for (size_t i = 0; i < instructions_.size(); ++i) instructions_[i]->slot_ = i;
}

Instruction* Computation::AddParameter(int64_t number, Shape shape, std::string_view name_hint) {
  Instruction* parameter =
      Add(Opcode::kParameter, std::move(shape), {}, name_hint.empty() ? "param" : name_hint);
  parameter->mutable_attrs().set_parameter_number(number);
  return parameter;
}

void Computation::Remove(Instruction* instruction) {
  TPUSIM_CHECK(instruction->parent() == this, instruction->name_);
  TPUSIM_CHECK(instruction->users_.empty(), instruction->name_ + " still has users");
  TPUSIM_CHECK(instruction != root_, instruction->name_ + " is the root");
  TPUSIM_CHECK(instruction->control_successors_.empty(),
               instruction->name_ + " still has control successors");
  for (Instruction* operand : instruction->operands_) EraseUser(operand->users_, instruction);
  for (Instruction* before : instruction->control_predecessors_) {
    std::erase(before->control_successors_, instruction);
  }
  std::erase(schedule_, instruction);
  const size_t slot = instruction->slot_;
  TPUSIM_CHECK(instructions_[slot].get() == instruction, instruction->name_);
  parent_->Retire(std::move(instructions_[slot]));
  --live_;
  if (instructions_.size() > 2 * live_ + 16) Compact();
}

int64_t Computation::RemoveDead(std::vector<const Instruction*>* removed) {
  Live();
  Compact();
  std::vector<char> live(instructions_.size(), 0);  // by slot
  size_t num_live = 0;
  std::vector<Instruction*> work;
  const auto mark = [&](Instruction* instruction) {
    if (live[instruction->slot_] != 0) return;
    live[instruction->slot_] = 1;
    ++num_live;
    work.push_back(instruction);
  };
  SideEffects side_effects;
  for (const auto& instruction : instructions_) {
    if (instruction.get() == root_ || instruction->opcode_ == Opcode::kParameter ||
        side_effects.Of(*instruction)) {
      mark(instruction.get());
    }
  }
  while (!work.empty()) {
    Instruction* instruction = work.back();
    work.pop_back();
    for (Instruction* operand : instruction->operands_) mark(operand);
    for (Instruction* before : instruction->control_predecessors_) mark(before);
  }
  const auto dead = [&](const Instruction* instruction) { return live[instruction->slot_] == 0; };
  const size_t before = instructions_.size();
  if (num_live == before) return 0;
  for (const auto& instruction : instructions_) {
    if (dead(instruction.get())) {
      if (removed != nullptr) removed->push_back(instruction.get());
    } else {
      std::erase_if(instruction->users_, dead);
      std::erase_if(instruction->control_successors_, dead);
    }
  }
  std::erase_if(schedule_, dead);
  for (auto& instruction : instructions_) {
    if (dead(instruction.get())) parent_->Retire(std::move(instruction));
  }
  Compact();
  live_ = instructions_.size();
  return static_cast<int64_t>(before - instructions_.size());
}

std::vector<Instruction*> Computation::instructions() const {
  std::vector<Instruction*> result;
  result.reserve(size());
  for (const auto& instruction : instructions_) {
    if (instruction != nullptr) result.push_back(instruction.get());
  }
  return result;
}

std::vector<Instruction*> Computation::AddedSince(int64_t id) const {
  std::vector<Instruction*> result;
  for (size_t i = Live().instructions_.size(); i-- > 0;) {
    if (instructions_[i] == nullptr) continue;
    if (instructions_[i]->id_ < id) break;
    result.push_back(instructions_[i].get());
  }
  std::ranges::reverse(result);
  return result;
}

bool Computation::TopologicalOrder(std::vector<Instruction*>* order) const {
  order->reserve(size());
  std::vector<Visited> visited(instructions_.size(), Visited::kNo);
  return DepthFirst<Instruction>(
      instructions(),
      [](const Instruction& instruction, size_t i) -> Instruction* {
        const auto& operands = instruction.operands();
        if (i < operands.size()) return operands[i];
        const auto& control = instruction.control_predecessors();
        return i - operands.size() < control.size() ? control[i - operands.size()] : nullptr;
      },
      [&](const Instruction* instruction) -> Visited& { return visited[instruction->slot_]; },
      order);
}

std::vector<Instruction*> Computation::PostOrder() const {
  std::vector<Instruction*> order;
  TPUSIM_CHECK(TopologicalOrder(&order), "cycle in computation " + name_);
  return order;
}

std::vector<Instruction*> Computation::parameters() const {
  std::vector<Instruction*> result;
  for (const auto& instruction : Live().instructions_) {
    if (instruction != nullptr && instruction->opcode_ == Opcode::kParameter) {
      result.push_back(instruction.get());
    }
  }
  std::ranges::stable_sort(result, [](const Instruction* a, const Instruction* b) {
    return a->attrs().parameter_number() < b->attrs().parameter_number();
  });
  return result;
}

void Computation::DropOrder() {
  for (const auto& instruction : Live().instructions_) {
    if (instruction == nullptr) continue;
    instruction->control_predecessors_.clear();
    instruction->control_successors_.clear();
  }
  schedule_.clear();
}

std::vector<Instruction*> Computation::Order() const {
  return schedule().empty() ? PostOrder() : schedule_;
}

// ---- Module ----------------------------------------------------------------

Module::Module(std::string name) : name_(std::move(name)) {}

Computation* Module::AddComputation(std::string_view name_hint) {
  auto computation = std::make_unique<Computation>();
  computation->name_ = UniqueComputationName(name_hint.empty() ? "computation" : name_hint);
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
  return CalleesFirst(computations(), order);
}

std::vector<Computation*> Module::PostOrder() const {
  std::vector<Computation*> order;
  TPUSIM_CHECK(TopologicalOrder(&order), "computations of " + name_ + " call each other");
  return order;
}

void Module::RemoveUnreachable() {
  TPUSIM_CHECK(entry_ != nullptr, "no entry computation");
  std::vector<Computation*> order;
  TPUSIM_CHECK(CalleesFirst({entry_}, &order), "computations of " + name_ + " call each other");
  const std::unordered_set<const Computation*> reachable(order.begin(), order.end());
  for (auto& computation : computations_) {
    if (!reachable.contains(computation.get())) Retire(std::move(computation));
  }
  std::erase(computations_, nullptr);
}

void Module::Retire(std::unique_ptr<Instruction> instruction) {
  instruction->removed_ = true;
  removed_instructions_.push_back(std::move(instruction));
  ++num_removed_;
}

void Module::Retire(std::unique_ptr<Computation> computation) {
  computation->removed_ = true;
  num_removed_ += static_cast<int64_t>(computation->live_);
  for (const auto& instruction : computation->instructions_) {
    if (instruction != nullptr) instruction->removed_ = true;
  }
  removed_computations_.push_back(std::move(computation));
}

void Module::Cleanup() {
  removed_instructions_.clear();
  removed_computations_.clear();
  num_removed_ = 0;
}

std::string Module::UniqueComputationName(std::string_view hint) {
  return UniqueNameIn(kComputations, hint);
}

std::string Module::UniqueNameIn(std::string_view space, std::string_view hint) {
  const auto within = [&](std::string_view name) {
    std::string whole(space);
    whole += name;
    return whole;
  };
  const auto take = [&](const std::string& name) { return names_.insert(within(name)).second; };
  std::string name(hint);
  if (take(name)) return name;
  // "add.3" counts on as "add.4", "add.5", ...
  const size_t dot = hint.rfind('.');
  if (dot != std::string_view::npos && dot + 1 < hint.size() &&
      hint.find_first_not_of("0123456789", dot + 1) == std::string_view::npos) {
    hint = hint.substr(0, dot);
  }
  int64_t& suffix = next_suffix_[within(hint)];
  do {
    name = fmt::format("{}.{}", hint, ++suffix);
  } while (!take(name));
  return name;
}

}  // namespace tpusim::hlo
