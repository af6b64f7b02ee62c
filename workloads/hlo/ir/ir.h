// The IR: Module > Computation > Instruction, as XLA's HLO.
//
// An Instruction is a node in a data-flow graph: an opcode, a result shape,
// operands and users, the computations that it calls, and attributes. The
// attributes that only some opcodes have stay in the wire message
// (`attrs()`, an HloInstructionProto whose structural fields - name, opcode,
// shape, ids, operands, called computations - are left empty), so that nothing a
// file says is lost, known to us or not; typed accessors in attributes.h read
// the common ones. Copies of an instruction share that message until one of them
// asks for `mutable_attrs()`: a reference from attrs() taken before that is to
// the message as it was.
//
// A Computation owns its instructions. It keeps no order of its own until it is
// scheduled: PostOrder() gives operands before users, deterministically.
//
// Every change of an instruction, and with it of its computation, has a number of its own, counted
// over all modules (LastChange()). So the verifier looks only at what has changed since it looked
// last (analysis/verify.h), and what was found out about an instruction holds for as long as
// ChangedSince() says no; new objects have changed when they were made. What is asked for again
// and again, PostOrder(), parameters() and callees(), is kept by the computation until a change
// that it depends on.
//
// Removing takes an instruction or a computation out of the graph at once, but its memory is
// freed only by Module::Cleanup(), which the pass runner calls after each pass and the other
// stages at their end, when nothing points to what went. Until then a removed object answers one
// question, removed(); every other one is a broken invariant that names it. So a pass that holds
// a pointer for too long fails at once and always, instead of reading what has taken that place
// in memory. Loops that change what they walk over are in walk.h.
//
// The room answers what a program is, in the compiler; `Module` is its entry point. Freeing an
// instruction when it is removed was tried and rejected: passes read what had taken its place, and
// the allocator hid it.
#ifndef TPUSIM_WORKLOADS_HLO_IR_IR_H_
#define TPUSIM_WORKLOADS_HLO_IR_IR_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "workloads/hlo/hlo.pb.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/ir/shape.h"

namespace tpusim::hlo {

class Computation;
class Module;

// The number of the last change of any module, from 1.
int64_t LastChange();

class Instruction {
 public:
  Opcode opcode() const { return Live().opcode_; }
  const std::string& name() const { return Live().name_; }
  // Unique in the module, dense from 0 in creation order, never used again.
  int64_t id() const { return Live().id_; }
  const Shape& shape() const { return Live().shape_; }
  void set_shape(Shape shape) {
    Live().shape_ = std::move(shape);
    Changed();
  }
  Computation* parent() const { return Live().parent_; }
  // Whether it is new, or its shape, attributes, operands, control predecessors or callees have
  // changed, after this change.
  bool ChangedSince(int64_t change) const { return Live().last_change_ > change; }
  // Whether it is out of its computation and waits for Module::Cleanup().
  bool removed() const { return removed_; }

  const std::vector<Instruction*>& operands() const { return Live().operands_; }
  Instruction* operand(size_t i) const { return Live().operands_[i]; }
  // Each user once, in the order in which they became users.
  const std::vector<Instruction*>& users() const { return Live().users_; }
  void ReplaceOperand(size_t i, Instruction* with);
  // Operand number `operand` of `user` is to be `with`.
  struct OperandChange {
    Instruction* user = nullptr;
    size_t operand = 0;
    Instruction* with = nullptr;
  };
  // Replaces operands as ReplaceOperand does one after the other, in time linear in them and in all
  // users of what they replace: a value may have as many users as the program has instructions.
  // None takes what another replaces.
  static void ReplaceOperands(const std::vector<OperandChange>& changes);
  // Every user (and the computation's root, if this is it) takes `with` instead.
  void ReplaceAllUsesWith(Instruction* with);

  const std::vector<Computation*>& called() const { return Live().called_; }
  void set_called(std::vector<Computation*> called);
  const std::vector<Instruction*>& control_predecessors() const {
    return Live().control_predecessors_;
  }
  const std::vector<Instruction*>& control_successors() const { return Live().control_successors_; }
  void AddControlPredecessor(Instruction* before);
  // Moves the control edges of this instruction: predecessors to `first`, successors to `last`.
  void MoveControlTo(Instruction* first, Instruction* last);
  bool has_control_edges() const {
    return !Live().control_predecessors_.empty() || !control_successors_.empty();
  }

  const pb::HloInstructionProto& attrs() const {
    return Live().attrs_ != nullptr ? attrs_->proto : pb::HloInstructionProto::default_instance();
  }
  pb::HloInstructionProto& mutable_attrs();
  void set_attrs(pb::HloInstructionProto attrs);
  void share_attrs(const Instruction& like);   // those of that, in one message
  void set_metadata(const Instruction& like);  // shared if there is no other attribute here
  // Returns the attributes as bytes, without those that say where the instruction comes from and
  // those for other tools (metadata, sharding, frontend attributes). Remembered until
  // mutable_attrs(), as the parameters of the computation are: a reference from there must not be
  // written to afterwards, nor in a later pass.
  const std::string& AttributeBytes() const;

  bool IsRoot() const;
  bool HasSideEffect() const;  // must not be removed although nothing uses it
  const std::string& op_name() const { return attrs().metadata().op_name(); }
  // "file.py:12" from the metadata or its stack frame; "" if unknown.
  std::string SourceLocation() const;
  // "dot.3 (jit(f)/dot_general, f.py:12)", for messages.
  std::string Describe() const;

 private:
  friend class Computation;
  friend class Module;
  const Instruction& Live() const {
    if (removed_) [[unlikely]]
      AskedAfterRemoval();
    return *this;
  }
  Instruction& Live() {
    if (removed_) [[unlikely]]
      AskedAfterRemoval();
    return *this;
  }
  [[noreturn]] void AskedAfterRemoval() const;
  // ReplaceOperand but for the users of what it returns; null: nothing changed.
  Instruction* Exchange(size_t i, Instruction* with);
  void Changed();       // this, but nothing that orders instructions
  void EdgesChanged();  // its operands or control predecessors
  void AttributesChanged();

  // The fields that are asked for most share a line of the cache with `removed_`, which every
  // access reads.
  Opcode opcode_ = Opcode::kParameter;
  bool removed_ = false;
  int64_t id_ = -1;
  int64_t last_change_ = 0;
  std::vector<Instruction*> operands_;
  std::vector<Instruction*> users_;
  Computation* parent_ = nullptr;
  Shape shape_;
  struct Attributes {
    pb::HloInstructionProto proto;
    std::optional<std::string> bytes;
    std::shared_ptr<Attributes> metadata;  // the metadata alone, once something was made from this
  };
  // The attributes that instructions of other opcodes made from this one share; null if there are
  // none.
  std::shared_ptr<Attributes> MetadataAlone() const;
  std::shared_ptr<Attributes> attrs_;  // null: all at their defaults
  std::vector<Computation*> called_;
  std::string name_;
  std::vector<Instruction*> control_predecessors_;
  std::vector<Instruction*> control_successors_;
  size_t slot_ = 0;  // in the parent's instructions_
};

class Computation {
 public:
  const std::string& name() const { return Live().name_; }
  Module* parent() const { return Live().parent_; }
  Instruction* root() const { return Live().root_; }
  void set_root(Instruction* root);
  // Whether it is out of its module, with all its instructions, and waits for Module::Cleanup().
  bool removed() const { return removed_; }
  // Whether it is new, or an instruction of it was added, removed or changed, or its root or
  // schedule, after this change.
  bool ChangedSince(int64_t change) const { return Live().last_change_ > change; }

  // `name_hint` (the opcode's name if empty) gets a suffix when it is taken.
  // Attributes start empty; with `like`, as those of `like` if the opcodes are
  // equal (called computations are not attributes), else only its metadata.
  Instruction* Add(Opcode opcode, Shape shape, std::vector<Instruction*> operands,
                   std::string_view name_hint = "", const Instruction* like = nullptr);
  Instruction* AddParameter(int64_t number, Shape shape, std::string_view name_hint);
  // No users and not the root, or a broken invariant.
  void Remove(Instruction* instruction);
  // Removes what neither the root nor a side effect needs. Parameters stay.
  // Returns how many went; their addresses, to look them up in maps, go to `removed`.
  int64_t RemoveDead(std::vector<const Instruction*>* removed = nullptr);

  // In creation order; may contain instructions whose operands come later.
  std::vector<Instruction*> instructions() const;
  // Returns the instructions with ids from `id` on, which were added last.
  std::vector<Instruction*> AddedSince(int64_t id) const;
  size_t size() const { return Live().live_; }
  // Operands and control predecessors before users; by creation order where
  // free. Not recursive.
  std::vector<Instruction*> PostOrder() const;
  std::vector<Instruction*> parameters() const { return Parameters(); }  // by parameter number
  Instruction* parameter(int64_t number) const { return Parameters()[number]; }
  int64_t num_parameters() const { return static_cast<int64_t>(Parameters().size()); }
  // Returns the computations that its instructions call, by creation order, as often as they do.
  const std::vector<Computation*>& callees() const;

  // The order in which the device executes, once scheduled; else empty.
  const std::vector<Instruction*>& schedule() const { return Live().schedule_; }
  void set_schedule(std::vector<Instruction*> order) {
    Live().schedule_ = std::move(order);
    Changed();
  }
  // schedule() if there is one, else PostOrder().
  std::vector<Instruction*> Order() const;
  // Forgets all control edges and the schedule: nothing but data flow orders it.
  void DropOrder();
  // Returns the fields that a file states of the computation itself (execution thread, unknown
  // fields); instructions, names and ids are left empty.
  const pb::HloComputationProto& attrs() const { return Live().attrs_; }
  pb::HloComputationProto& mutable_attrs() { return Live().attrs_; }
  // PostOrder(), or false if operands or control predecessors form a cycle.
  bool TopologicalOrder(std::vector<Instruction*>* order) const;

 private:
  friend class Instruction;
  friend class Module;
  const Computation& Live() const {
    if (removed_) [[unlikely]]
      AskedAfterRemoval();
    return *this;
  }
  Computation& Live() {
    if (removed_) [[unlikely]]
      AskedAfterRemoval();
    return *this;
  }
  [[noreturn]] void AskedAfterRemoval() const;
  std::string name_;
  Module* parent_ = nullptr;
  bool removed_ = false;
  void Append(std::unique_ptr<Instruction> instruction);
  void Compact();
  int64_t Changed();  // returns the number of the change
  // An instruction was added or is about to be removed: what depends on it is not kept.
  void Forget(const Instruction& instruction);
  const std::vector<Instruction*>& Parameters() const;
  // Removed ones leave a null behind until enough of them have gathered: taking
  // instructions out one by one stays linear.
  std::vector<std::unique_ptr<Instruction>> instructions_;
  size_t live_ = 0;
  Instruction* root_ = nullptr;
  std::vector<Instruction*> schedule_;
  pb::HloComputationProto attrs_;
  int64_t last_change_ = 0;
  // Answers that are kept until a change that they depend on.
  mutable std::optional<std::vector<Instruction*>> post_order_;
  mutable std::optional<std::vector<Instruction*>> parameters_;
  mutable std::optional<std::vector<Computation*>> callees_;
};

// Collects the computations that `roots` reach through calls, themselves included, callees before
// callers. False: computations call each other in a circle. Not recursive.
bool CalleesFirst(const std::vector<Computation*>& roots, std::vector<Computation*>* order);

class Module {
 public:
  explicit Module(std::string name);
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  const std::string& name() const { return name_; }
  void set_name(std::string name) { name_ = std::move(name); }
  Computation* entry() const { return entry_; }
  void set_entry(Computation* entry) { entry_ = entry; }
  Computation* AddComputation(std::string_view name_hint);
  // Callees before callers, by creation order where free.
  std::vector<Computation*> PostOrder() const;
  // Every computation, in creation order.
  std::vector<Computation*> computations() const;
  // PostOrder(), or false if computations call each other in a circle.
  bool TopologicalOrder(std::vector<Computation*>* order) const;
  void RemoveUnreachable();
  // Frees what was removed, computations and instructions. Only where nothing points to them: at
  // the end of a pass or of another stage of the compiler.
  void Cleanup();
  // Returns the number of removed instructions that wait for Cleanup(), those of removed
  // computations included.
  int64_t num_removed() const { return num_removed_; }

  // A deep copy; names and ids are kept.
  std::unique_ptr<Module> Clone() const;
  // A copy of `source` (of this or another module) inside this module. Called
  // computations are copied too, each once per call of this function.
  Computation* CloneComputation(const Computation& source, std::string_view name_hint = "");
  // Replaces a kCall or kFusion by a copy of the body of what it calls; returns the
  // value that took its place. op_names of the body continue that of a call. Loop
  // bodies, branches and callees inside are copied too, reducers are shared.
  Instruction* InlineCall(Instruction* call);
  // Inlines every call and fusion for which `wanted` holds, also those inside what is
  // inlined. The last call of a computation takes over its instructions with
  // their names, and the emptied computations go. Returns how many calls went.
  // Takes time in proportion to the result, however deep calls are nested; ask
  // InlinedSize() first, because calls that call twice each double it.
  int64_t InlineCalls(const std::function<bool(const Instruction&)>& wanted);
  // Instructions of the module after InlineCalls(wanted), copies of loop bodies
  // included; at most 2^62.
  int64_t InlinedSize(const std::function<bool(const Instruction&)>& wanted) const;

  // The last change before the verifier has found nothing wrong; 0: it never has.
  int64_t right_until() const { return right_until_; }
  void FoundRight() { right_until_ = LastChange(); }

  // Returns a number above all ids: tables by id have this size.
  int64_t next_id() const { return next_id_; }
  // Module-level fields other than computations and names: aliases, donors,
  // frontend attributes, stack frames, as in the file.
  const pb::HloModuleProto& fields() const { return fields_; }
  pb::HloModuleProto& mutable_fields() { return fields_; }

  // A name for an instruction: the hint, or the hint with the first free number
  // as suffix ("add.3"). It is taken from then on.
  std::string UniqueName(std::string_view hint) { return UniqueNameIn("", hint); }
  // Frees the name of an instruction that was removed: another may take it.
  void ReleaseName(const std::string& name) { names_.erase(name); }

 private:
  friend class Computation;
  // Names of instructions and of computations are apart: `space` is a prefix.
  std::string UniqueNameIn(std::string_view space, std::string_view hint);
  std::string UniqueComputationName(std::string_view hint);
  class Inliner;
  // Keep what went until Cleanup(). It must be out of the graph.
  void Retire(std::unique_ptr<Instruction> instruction);
  void Retire(std::unique_ptr<Computation> computation);
  Computation* CopyInto(const Computation& source, std::string name,
                        const std::unordered_map<const Computation*, Computation*>& copies,
                        bool keep_names);
  std::string name_;
  std::vector<std::unique_ptr<Computation>> computations_;
  Computation* entry_ = nullptr;
  pb::HloModuleProto fields_;
  absl::flat_hash_set<std::string> names_;                  // looked up, never iterated
  absl::flat_hash_map<std::string, int64_t> next_suffix_;  // looked up, never iterated
  int64_t next_id_ = 0;
  int64_t right_until_ = 0;
  std::vector<std::unique_ptr<Instruction>> removed_instructions_;
  std::vector<std::unique_ptr<Computation>> removed_computations_;
  int64_t num_removed_ = 0;
};

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_IR_IR_H_
