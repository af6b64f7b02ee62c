// The module as a whole, and the families that only pass arrays on.

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "workloads/hlo/analysis/call_graph.h"
#include "workloads/hlo/analysis/loops.h"
#include "workloads/hlo/ir/annotations.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/kernels/opaque/custom_cost.h"
#include "workloads/passes/layout/problem_builder.h"

namespace tpusim::passes {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;
using hlo::Shape;

namespace {

// The custom calls that take arrays as they lie.
bool TakesAnyLayout(const Instruction& call) {
  return call.opcode() == Opcode::kCustomCall &&
         (PlacementOf(call).has_value() || kernels::IsTopKCall(call) ||
          kernels::IsPartialReduceCall(call) ||
          call.attrs().custom_call_target() == hlo::kAllocateBuffer);
}

// Computed inside of its users' kernels, or of its operand's.
bool MayFuse(const Instruction& i) {
  return hlo::IsElementwise(i.opcode()) || i.opcode() == Opcode::kBroadcast ||
         i.opcode() == Opcode::kIota || i.opcode() == Opcode::kReduce;
}

// Kernels read all of the value and may take it in another order. What is updated in place, a
// loop, a branch or a collective has it as it lies.
bool IsReadByKernel(const Instruction& value, const Instruction& user) {
  const bool updated =
      (user.opcode() == Opcode::kDynamicUpdateSlice || user.opcode() == Opcode::kScatter) &&
      user.operand(0) == &value;
  return hlo::MovesThroughWindows(user.opcode()) && !updated;
}

// A kernel writes all of it.
bool IsMadeByKernel(const Instruction& value) {
  return hlo::MovesThroughWindows(value.opcode()) &&
         value.opcode() != Opcode::kDynamicUpdateSlice && value.opcode() != Opcode::kScatter;
}

}  // namespace

LayoutProblem ProblemBuilder::Run() {
  const std::vector<Computation*> computations = ControlComputations(module_);
  NoteTrips(computations);
  for (const Computation* computation : computations) {
    for (const Instruction* i : computation->PostOrder()) AddValues(*i);
  }
  for (const Computation* computation : computations) {
    trips_ = trips_of_.at(computation);
    for (const Instruction* i : computation->PostOrder()) {
      Add(*i);
      AddMemory(*i);
    }
  }
  FixResults();
  // What may also be moved comes after all that may not.
  for (const Instruction* transpose : transposes_) AddTranspose(*transpose);
  return std::move(problem_);
}

void ProblemBuilder::NoteTrips(const std::vector<Computation*>& computations) {
  for (const Computation* c : computations) trips_of_.emplace(c, 1.0);
  for (const Computation* c : computations) {  // callers first
    const double outer = trips_of_.at(c);
    for (const Instruction* i : c->PostOrder()) {
      const double times =
          i->opcode() == Opcode::kWhile
              ? static_cast<double>(std::max<int64_t>(1, hlo::TripCount(*i).value_or(1)))
              : 1.0;
      for (const Computation* called : i->called()) {
        const auto at = trips_of_.find(called);
        if (at != trips_of_.end()) at->second = std::max(at->second, outer * times);
      }
    }
  }
}

void ProblemBuilder::AddValues(const Instruction& i) {
  std::vector<int32_t>& made = problem_.made[&i];
  for (const Shape* leaf : hlo::Leaves(i.shape())) {
    made.push_back(HasOrder(*leaf) ? problem_.classes.Add(leaf->rank()) : -1);
  }
  problem_.seen[&i] = problem_.made[&i];
}

void ProblemBuilder::Add(const Instruction& i) {
  if (hlo::IsElementwise(i.opcode())) return AddElementwise(i);
  if (hlo::IsCollective(i.opcode())) return AddCollective(i);
  if (hlo::IsControlFlow(i.opcode())) return AddCallees(i);
  if (TakesPieces(i.opcode())) return AddPieces(i);
  switch (i.opcode()) {
    case Opcode::kParameter:
      if (i.parent() == module_.entry()) AddArgument(i);
      return;
    case Opcode::kConstant:
    case Opcode::kIota:
    case Opcode::kRngBitGenerator:
      return;
    case Opcode::kRaggedDot:
      return AddRagged(i);
    case Opcode::kTuple:
      if (!AddOrderedState(i)) AddTuple(i);
      return;
    case Opcode::kGetTupleElement:
      UniteLeaves(*i.operand(0), i, LeavesBefore(*i.operand(0), i.attrs().tuple_index()));
      if (opaque_tuples_.contains(i.operand(0))) {
        // What a loop has was made by no kernel of its own.
        const bool of_loop = i.operand(0)->opcode() == Opcode::kWhile;
        Separate(i, of_loop ? LinkKind::kMove : LinkKind::kCopy);
      }
      return;
    case Opcode::kOptBarrier:
    case Opcode::kCopy:
    case Opcode::kDomain:
    case Opcode::kAddDependency:
      return UniteLeaves(*i.operand(0), i);
    case Opcode::kBitcastConvert:
    case Opcode::kMap:
      return AddElementwise(i);
    case Opcode::kTranspose:
      transposes_.push_back(&i);
      return;
    case Opcode::kReshape:
      return AddLink(LinkKind::kReshape, Seen(*i.operand(0)), Made(i), i.operand(0)->shape(),
                     i.shape());
    case Opcode::kBroadcast:
      return AddLink(LinkKind::kLanes, Seen(*i.operand(0)), Made(i), i.operand(0)->shape(),
                     i.shape(), hlo::Dimensions(i));
    case Opcode::kReduce:
      return AddReduce(i);
    case Opcode::kReduceWindow:
    case Opcode::kSelectAndScatter:
      return AddWindow(i);
    case Opcode::kSort:
    case Opcode::kTopk:
      return AddSort(i);
    case Opcode::kGather:
    case Opcode::kScatter:
      return AddIndexed(i);
    case Opcode::kDot:
      return AddDot(i);
    case Opcode::kConvolution:
      return AddConvolution(i);
    default:
      return AddOpaque(i);
  }
}

void ProblemBuilder::AddTuple(const Instruction& i) {
  size_t leaf = 0;
  for (const Instruction* o : i.operands()) {
    if (!IsMadeAnywhere(*o)) UniteLeaves(*o, i, 0, leaf);
    leaf += problem_.seen.at(o).size();
  }
}

// The state of a loop with such elements: they are copied on the way in if they lie otherwise, and
// all that comes out may be copied.
bool ProblemBuilder::AddOrderedState(const Instruction& i) {
  if (i.users().size() != 1 || i.users()[0]->opcode() != Opcode::kWhile) return false;
  const auto orders =
      hlo::annotations::kElementOrders.Of(*i.users()[0]).value_or(std::map<int64_t, Dims>());
  if (orders.empty()) return false;
  opaque_tuples_.insert(i.users()[0]);
  size_t leaf = 0;
  for (size_t n = 0; n < i.operands().size(); ++n) {
    const Instruction& o = *i.operand(n);
    const auto order = orders.find(static_cast<int64_t>(n));
    const bool ordered = order != orders.end() && std::ssize(order->second) == o.shape().rank() &&
                         HasOrder(o.shape());
    if (ordered && !IsMadeAnywhere(o)) {
      const int32_t wanted = Want(i, n, IsMadeByKernel(o) ? LinkKind::kCopy : LinkKind::kMove);
      problem_.made[&i][leaf] = problem_.seen[&i][leaf] = wanted;
    } else if (!IsMadeAnywhere(o)) {
      UniteLeaves(o, i, 0, leaf);
    }
    if (ordered) problem_.fixed.emplace(Made(i, leaf), order->second);
    leaf += problem_.seen.at(&o).size();
  }
  return true;
}

// Adds the callees of an instruction: operands, results and carries keep their layout.
void ProblemBuilder::AddCallees(const Instruction& i) {
  if (i.opcode() == Opcode::kWhile) {
    UniteLeaves(*i.operand(0), i);
    for (const Computation* c : i.called()) UniteLeaves(*i.operand(0), *c->parameters()[0]);
    return UniteLeaves(*i.called()[0]->root(), i);
  }
  for (size_t c = 0; c < i.called().size(); ++c) {
    const std::vector<Instruction*> parameters = i.called()[c]->parameters();
    // A branch has one argument, behind the index.
    const size_t first = i.opcode() == Opcode::kConditional ? c + 1 : 0;
    for (size_t n = 0; n < parameters.size(); ++n) {
      UniteLeaves(*i.operand(first + n), *parameters[n]);
    }
    UniteLeaves(*i.called()[c]->root(), i);
  }
}

// Nothing is known of it but that its author counts dimensions from the slowest; or that it
// takes arrays as they lie.
void ProblemBuilder::AddOpaque(const Instruction& i) {
  if (TakesAnyLayout(i)) {
    for (size_t leaf = 0; leaf < problem_.made.at(&i).size(); ++leaf) {
      if (!i.operands().empty()) Unite(Seen(*i.operand(0)), Made(i, leaf));
    }
    return;
  }
  for (const int32_t made : problem_.made.at(&i)) FixRowMajor(made);
  if (i.shape().IsTuple()) {
    opaque_tuples_.insert(&i);  // its elements can be copied, one by one
  } else {
    Separate(i);
  }
  for (size_t n = 0; n < i.operands().size(); ++n) FixRowMajor(Want(i, n));
}

// Adds an argument: its stated layout if that is not row-major, else the one with least padding.
void ProblemBuilder::AddArgument(const Instruction& i) {
  const std::vector<const Shape*> leaves = hlo::Leaves(i.shape());
  for (size_t leaf = 0; leaf < leaves.size(); ++leaf) {
    if (Made(i, leaf) < 0) continue;
    const Shape& shape = *leaves[leaf];
    problem_.fixed.emplace(Made(i, leaf), hlo::IsRowMajor(shape) ? target_.DefaultOrder(shape)
                                                                 : hlo::MinorToMajor(shape));
  }
  // Elements of a tuple cannot be copied one by one where they are, nor what is on the host.
  if (!i.shape().IsArray() || OnHost(i.shape())) return;
  const bool read_by_kernels = std::ranges::all_of(
      i.users(), [&](const Instruction* user) { return IsReadByKernel(i, *user); });
  Separate(i, read_by_kernels ? LinkKind::kCopy : LinkKind::kMove);
}

// The layouts of results in a file are no wish: the shape rules of XLA leave the operand's
// order on a transpose, and it becomes that of the result.
void ProblemBuilder::FixResults() {
  const Instruction& root = *module_.entry()->root();
  trips_ = 1;
  const auto fix = [&](const Instruction& value, int32_t at) {
    if (at >= 0) problem_.fixed.emplace(at, target_.DefaultOrder(value.shape()));
  };
  if (root.opcode() == Opcode::kTuple) {
    for (size_t n = 0; n < root.operands().size(); ++n) {
      if (OnHost(root.operand(n)->shape())) continue;
      const int32_t wanted =
          Want(root, n, IsMadeByKernel(*root.operand(n)) ? LinkKind::kCopy : LinkKind::kMove);
      if (wanted < 0) continue;
      fix(*root.operand(n), wanted);
      // The tuple holds what was wanted.
      const size_t leaf = LeavesBefore(root, static_cast<int64_t>(n));
      problem_.made[&root][leaf] = problem_.seen[&root][leaf] = wanted;
    }
    return;
  }
  if (!HasOrder(root.shape()) || OnHost(root.shape())) return;
  // As if a user of the root wanted it.
  const int32_t wanted = problem_.classes.Add(root.shape().rank());
  problem_.wanted[{root.id(), -1}] = wanted;
  AddLink(LinkKind::kCopy, Seen(root), wanted, root.shape(), root.shape());
  fix(root, wanted);
}

void ProblemBuilder::AddElementwise(const Instruction& i) {
  for (const Instruction* o : i.operands()) {
    if (o->shape().IsArray() && o->shape().dims == i.shape().dims && !TakesOwnOrder(i, *o)) {
      Unite(Seen(*o), Made(i));
    }
  }
}

// Adds a collective, whose operands and results share their layout.
void ProblemBuilder::AddCollective(const Instruction& i) {
  const size_t leaves = problem_.made.at(&i).size();
  if (i.shape().IsArray()) {
    for (size_t n = 0; n < std::min<size_t>(2, i.operands().size()); ++n) {
      if (i.operand(n)->shape().rank() == i.shape().rank()) Unite(Seen(*i.operand(n)), Made(i));
    }
    return;
  }
  for (size_t n = 0; n < std::min(leaves, i.operands().size()); ++n) {
    if (i.operand(n)->shape().IsArray()) Unite(Seen(*i.operand(n)), Made(i, n));
  }
}

void ProblemBuilder::AddMemory(const Instruction& i) {
  if (hlo::IsFree(i.opcode()) || hlo::IsControlFlow(i.opcode())) return;
  if (i.opcode() == Opcode::kTranspose) return;
  // What a reshape moves is the link's.
  if (i.opcode() == Opcode::kReshape && HasOrder(i.operand(0)->shape())) return;
  // Made again in each of several users' kernels rather than kept.
  const bool fused =
      MayFuse(i) && !i.users().empty() && !i.IsRoot() &&
      std::ranges::all_of(i.users(), [](const auto* user) { return MayFuse(*user); });
  const std::vector<const Shape*> leaves = hlo::Leaves(i.shape());
  for (size_t leaf = 0; leaf < leaves.size(); ++leaf) {
    AddTerm(fused ? TermKind::kRegisters : TermKind::kMemory, Made(i, leaf), *leaves[leaf], {});
  }
}

bool HasOrder(const Shape& shape) { return shape.IsArray() && shape.rank() > 1; }

bool IsMadeAnywhere(const Instruction& i) {
  return i.opcode() == Opcode::kIota || i.opcode() == Opcode::kConstant ||
         (i.opcode() == Opcode::kBroadcast && i.operand(0)->shape().IsScalar());
}

bool TakesOwnOrder(const Instruction& user, const Instruction& operand) {
  if (!IsMadeAnywhere(operand) || !user.shape().IsArray() ||
      operand.shape().rank() != user.shape().rank()) {
    return false;
  }
  return hlo::IsElementwise(user.opcode()) || user.opcode() == Opcode::kMap ||
         TakesPieces(user.opcode());
}

bool TakesPieces(Opcode opcode) {
  const bool renames = opcode == Opcode::kReshape || opcode == Opcode::kTranspose ||
                       opcode == Opcode::kBroadcast || opcode == Opcode::kBitcast;
  return opcode == Opcode::kDynamicUpdateSlice || (hlo::IsIndexMap(opcode) && !renames);
}

LayoutProblem BuildLayoutProblem(const hlo::Module& module, const target::Target& target) {
  return ProblemBuilder(module, target).Run();
}

}  // namespace tpusim::passes
