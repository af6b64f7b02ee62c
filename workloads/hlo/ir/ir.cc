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

int64_t last_change = 0;

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

bool Uses(const Instruction& user, const Instruction* operand) {
  return std::ranges::find(user.operands(), operand) != user.operands().end();
}

// The last ones go first more often than not.
void EraseUser(std::vector<Instruction*>& users, const Instruction* user) {
  const auto it = std::find(users.rbegin(), users.rend(), user);
  if (it != users.rend()) users.erase(std::next(it).base());
}

}  // namespace

int64_t LastChange() { return last_change; }

bool CalleesFirst(const std::vector<Computation*>& roots, std::vector<Computation*>* order) {
  std::unordered_map<const Computation*, Visited> visited;
  visited.reserve(roots.size());
  return DepthFirst<Computation>(
      roots,
      [](const Computation& computation, size_t i) -> Computation* {
        const std::vector<Computation*>& called = computation.callees();
        return i < called.size() ? called[i] : nullptr;
      },
      [&](const Computation* computation) -> Visited& { return visited[computation]; }, order);
}

// ---- Instruction -----------------------------------------------------------

void Instruction::AskedAfterRemoval() const {
  CheckFailed(__FILE__, __LINE__, "!removed()",
              "instruction " + name_ + " was removed, and something still asks it");
}

Instruction* Instruction::Exchange(size_t i, Instruction* with) {
  TPUSIM_CHECK(i < Live().operands_.size(), name_);
  TPUSIM_CHECK(with->parent() == parent_, with->name_ + " is not in the computation of " + name_);
  Instruction* old = operands_[i];
  if (old == with) return nullptr;
  const bool is_user = Uses(*this, with);
  operands_[i] = with;
  if (!is_user) with->users_.push_back(this);
  EdgesChanged();
  return old;
}

void Instruction::ReplaceOperand(size_t i, Instruction* with) {
  Instruction* old = Exchange(i, with);
  if (old != nullptr && !Uses(*this, old)) EraseUser(old->users_, this);
}

void Instruction::ReplaceOperands(const std::vector<OperandChange>& changes) {
  std::vector<Instruction*> replaced, taken;
  for (const OperandChange& change : changes) {
    Instruction* old = change.user->Exchange(change.operand, change.with);
    if (old == nullptr) continue;
    replaced.push_back(old);
    taken.push_back(change.with);
  }
  for (std::vector<Instruction*>* list : {&replaced, &taken}) {
    std::ranges::sort(*list);
    const auto same = std::ranges::unique(*list);
    list->erase(same.begin(), same.end());
  }
  for (Instruction* old : replaced) {
    TPUSIM_CHECK(!std::ranges::binary_search(taken, old), old->name_ + " is replaced and taken");
    std::erase_if(old->users_, [&](const Instruction* user) { return !Uses(*user, old); });
  }
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
    user->EdgesChanged();
    if (!is_user) with->users_.push_back(user);
  }
  if (parent_->root() == this) parent_->set_root(with);
}

void Instruction::AddControlPredecessor(Instruction* before) {
  const auto& list = control_predecessors();
  if (std::ranges::find(list, before) != list.end()) return;
  control_predecessors_.push_back(before);
  before->Live().control_successors_.push_back(this);
  EdgesChanged();
}

void Instruction::MoveControlTo(Instruction* first, Instruction* last) {
  for (Instruction* before : std::exchange(Live().control_predecessors_, {})) {
    std::erase(before->control_successors_, this);
    EdgesChanged();
    first->AddControlPredecessor(before);
  }
  for (Instruction* after : std::exchange(control_successors_, {})) {
    std::erase(after->control_predecessors_, this);
    after->EdgesChanged();
    after->AddControlPredecessor(last);
  }
}

void Instruction::Changed() {
  if (parent_ != nullptr) last_change_ = parent_->Changed();
}

void Instruction::EdgesChanged() {
  Changed();
  if (parent_ != nullptr) parent_->post_order_.reset();
}

void Instruction::set_called(std::vector<Computation*> called) {
  Live().called_ = std::move(called);
  Changed();
  if (parent_ != nullptr) parent_->callees_.reset();
}

bool Instruction::IsRoot() const { return parent() != nullptr && parent_->root() == this; }

pb::HloInstructionProto& Instruction::mutable_attrs() {
  if (Live().attrs_ == nullptr) {
    attrs_ = std::make_shared<Attributes>();
  } else if (attrs_.use_count() > 1) {
    attrs_ = std::make_shared<Attributes>(Attributes{attrs_->proto, std::nullopt, nullptr});
  }
  attrs_->bytes.reset();
  attrs_->metadata.reset();
  AttributesChanged();
  return attrs_->proto;
}

void Instruction::AttributesChanged() {
  Changed();
  if (opcode_ == Opcode::kParameter && parent_ != nullptr) parent_->parameters_.reset();
}

void Instruction::set_attrs(pb::HloInstructionProto attrs) {
  // An empty message takes several hundred bytes, more than the rest of an instruction.
  Live().attrs_ = attrs.ByteSizeLong() == 0
                      ? nullptr
                      : std::make_shared<Attributes>(
                            Attributes{std::move(attrs), std::nullopt, nullptr});
  AttributesChanged();
}

void Instruction::share_attrs(const Instruction& like) {
  Live().attrs_ = like.Live().attrs_;
  AttributesChanged();
}

void Instruction::set_metadata(const Instruction& like) {
  if (!like.attrs().has_metadata()) return;
  if (Live().attrs_ != nullptr) {
    *mutable_attrs().mutable_metadata() = like.attrs().metadata();
    return;
  }
  attrs_ = like.MetadataAlone();
  AttributesChanged();
}

std::shared_ptr<Instruction::Attributes> Instruction::MetadataAlone() const {
  if (!attrs().has_metadata()) return nullptr;
  if (attrs_->metadata == nullptr) {
    attrs_->metadata = std::make_shared<Attributes>();
    *attrs_->metadata->proto.mutable_metadata() = attrs_->proto.metadata();
  }
  return attrs_->metadata;
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
  Changed();
}

int64_t Computation::Changed() { return last_change_ = ++last_change; }

void Computation::Forget(const Instruction& instruction) {
  post_order_.reset();
  if (instruction.opcode_ == Opcode::kParameter) parameters_.reset();
  if (!instruction.called_.empty()) callees_.reset();
  Changed();
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
  } else if (like != nullptr) {
    instruction->set_metadata(*like);
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
  Forget(*instruction);
  instruction->last_change_ = last_change_;
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
  Forget(*instruction);
  parent_->Retire(std::move(instructions_[slot]));
  --live_;
  if (instructions_.size() > 2 * live_ + 16) Compact();
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
  if (Live().post_order_) {
    *order = *post_order_;
    return true;
  }
  order->clear();
  order->reserve(size());
  std::vector<Visited> visited(instructions_.size(), Visited::kNo);
  const bool acyclic = DepthFirst<Instruction>(
      instructions(),
      [](const Instruction& instruction, size_t i) -> Instruction* {
        const auto& operands = instruction.operands();
        if (i < operands.size()) return operands[i];
        const auto& control = instruction.control_predecessors();
        return i - operands.size() < control.size() ? control[i - operands.size()] : nullptr;
      },
      [&](const Instruction* instruction) -> Visited& { return visited[instruction->slot_]; },
      order);
  if (acyclic) post_order_ = *order;
  return acyclic;
}

std::vector<Instruction*> Computation::PostOrder() const {
  std::vector<Instruction*> order;
  TPUSIM_CHECK(TopologicalOrder(&order), "cycle in computation " + name_);
  return order;
}

const std::vector<Instruction*>& Computation::Parameters() const {
  if (Live().parameters_) return *parameters_;
  std::vector<Instruction*>& result = parameters_.emplace();
  for (const auto& instruction : instructions_) {
    if (instruction != nullptr && instruction->opcode_ == Opcode::kParameter) {
      result.push_back(instruction.get());
    }
  }
  std::ranges::stable_sort(result, [](const Instruction* a, const Instruction* b) {
    return a->attrs().parameter_number() < b->attrs().parameter_number();
  });
  return result;
}

const std::vector<Computation*>& Computation::callees() const {
  if (Live().callees_) return *callees_;
  std::vector<Computation*>& result = callees_.emplace();
  for (const auto& instruction : instructions_) {
    if (instruction == nullptr) continue;
    result.insert(result.end(), instruction->called_.begin(), instruction->called_.end());
  }
  return result;
}

void Computation::DropOrder() {
  for (const auto& instruction : Live().instructions_) {
    if (instruction == nullptr) continue;
    if (!instruction->control_predecessors_.empty()) {
      instruction->control_predecessors_.clear();
      instruction->EdgesChanged();
    }
    instruction->control_successors_.clear();
  }
  if (!schedule_.empty()) set_schedule({});
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
  computation->Changed();
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
  std::string name(space);
  name += hint;
  const auto taken = [&] {
    name.erase(0, space.size());
    return std::move(name);
  };
  if (names_.insert(name).second) return taken();
  // "add.3" counts on as "add.4", "add.5", ...
  const size_t dot = hint.rfind('.');
  if (dot != std::string_view::npos && dot + 1 < hint.size() &&
      hint.find_first_not_of("0123456789", dot + 1) == std::string_view::npos) {
    hint = hint.substr(0, dot);
  }
  name.assign(space);
  name += hint;
  int64_t& suffix = next_suffix_[name];
  name.push_back('.');
  const size_t stem = name.size();
  do {
    name.resize(stem);
    name += fmt::format_int(++suffix).c_str();
  } while (!names_.insert(name).second);
  return taken();
}

}  // namespace tpusim::hlo
