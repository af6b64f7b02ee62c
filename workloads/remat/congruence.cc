#include "workloads/remat/congruence.h"

#include <fmt/format.h>

#include "workloads/hlo/analysis/underlying.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"

namespace tpusim::remat {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

bool SameShape(const hlo::Shape& a, const hlo::Shape& b) {
  const std::vector<const hlo::Shape*> x = hlo::Leaves(a), y = hlo::Leaves(b);
  if (a.IsTuple() != b.IsTuple() || x.size() != y.size()) return false;
  for (size_t n = 0; n < x.size(); ++n) {
    if (!hlo::SameDims(*x[n], *y[n])) return false;
  }
  return true;
}

// Whether the attributes of two operations are equal, apart from the channel of a collective.
bool SameAttributes(const Instruction& a, const Instruction& b) {
  if (a.opcode() == Opcode::kCustomCall) {
    const auto& x = a.attrs().frontend_attributes().map();
    const auto& y = b.attrs().frontend_attributes().map();
    if (x.size() != y.size()) return false;
    for (const auto& [key, value] : x) {
      const auto found = y.find(key);
      if (found == y.end() || found->second != value) return false;
    }
    if (a.attrs().sharding().SerializeAsString() != b.attrs().sharding().SerializeAsString()) {
      return false;
    }
  }
  if (a.AttributeBytes() == b.AttributeBytes()) return true;
  if (!hlo::HasChannel(a) || !hlo::HasChannel(b)) return false;
  const auto bare = [](const Instruction& i) {
    hlo::pb::HloInstructionProto rest = i.attrs();
    rest.clear_metadata();
    rest.clear_sharding();
    rest.clear_frontend_attributes();
    rest.clear_channel_id();
    return rest.SerializeAsString();
  };
  return bare(a) == bare(b);
}

}  // namespace

std::optional<Difference> Congruence::Find(Instruction* later, Instruction* earlier) {
  seen_.clear();
  work_.clear();
  relations_.clear();
  why_.clear();
  Want(later, earlier);
  while (!work_.empty()) {
    const auto [a, b] = work_.back();
    work_.pop_back();
    if (!Step(a, b)) return Difference{why_, static_cast<int64_t>(seen_.size() - work_.size())};
  }
  return std::nullopt;
}

bool Congruence::Want(Instruction* a, Instruction* b) {
  a = Resolved(a, callers_);
  b = Resolved(b, callers_);
  if (a != b && seen_.insert({a, b}).second) work_.emplace_back(a, b);
  return true;
}

bool Congruence::Refuse(std::string why) {
  why_ = std::move(why);
  return false;
}

void Congruence::Align(const Computation* a, const Computation* b, Relation relation) {
  if (a != b) relations_.emplace(std::pair(a, b), relation);
}

Congruence::Relation Congruence::Direct(const Computation* a, const Computation* b) const {
  if (a == b) return Relation::kSame;
  if (const auto found = relations_.find({a, b}); found != relations_.end()) return found->second;
  const bool loops =
      pair_ != nullptr && a == pair_->backward->called()[0] && b == pair_->forward->called()[0];
  return loops ? Relation::kLoops : Relation::kNone;
}

// The computation of a value, and those of the loops around it.
std::vector<const Computation*> Congruence::Around(const Instruction* value) const {
  std::vector<const Computation*> around = {HomeOf(value->parent(), callers_)};
  for (auto at = callers_.find(around[0]); at != callers_.end();
       at = callers_.find(around.back())) {
    around.push_back(HomeOf(at->second->parent(), callers_));
  }
  return around;
}

Congruence::Relation Congruence::RelationOf(const Instruction* a, const Instruction* b) const {
  const std::vector<const Computation*> of_a = Around(a), of_b = Around(b);
  if (const Relation direct = Direct(of_a[0], of_b[0]); direct != Relation::kNone) return direct;
  for (const Computation* x : of_a) {
    for (const Computation* y : of_b) {
      if (Direct(x, y) != Relation::kNone) return Relation::kApart;
    }
  }
  return Relation::kNone;
}

bool Congruence::IsElement(const Instruction* value) const {
  return hlo::CarriedElement(*value, *value->parent()) >= 0 && callers_.contains(value->parent());
}

Instruction* Congruence::Before(const Instruction* value) const {
  if (!IsElement(value)) return nullptr;
  const Instruction& loop = *callers_.at(value->parent());
  const int64_t element = value->attrs().tuple_index();
  return hlo::IsInvariant(loop, element) ? hlo::TupleElement(loop.operand(0), element) : nullptr;
}

Instruction* Congruence::FromOtherRegion(const Instruction* value) const {
  const auto in = BoundaryOf(*value);
  if (!in || !in->inwards) return nullptr;
  Instruction* whole = Resolved(in->value, callers_);
  for (Instruction* before = Before(whole); before != nullptr; before = Before(whole)) {
    whole = Resolved(before, callers_);
  }
  const auto out = BoundaryOf(*whole);
  return out && !out->inwards && in->SameSharding(*out) ? out->value : nullptr;
}

bool Congruence::Step(Instruction* a, Instruction* b) {
  const auto differ = [&] {
    return Refuse(fmt::format("{} is not seen to be {}", a->Describe(), b->Describe()));
  };
  if (!SameShape(a->shape(), b->shape())) return differ();
  bool equal = false;
  switch (RelationOf(a, b)) {
    case Relation::kNone:
      return differ();
    case Relation::kLoops:
      if (AcrossLoops(a, b, equal)) return equal || differ();
      break;
    case Relation::kApart:
      if (Invariants(a, b, equal)) return equal || differ();
      break;
    default:
      if (IsElement(a) != IsElement(b) && Invariants(a, b, equal)) return equal || differ();
      break;
  }
  if (const auto p = BoundaryOf(*a), q = BoundaryOf(*b); p || q) {
    if (p && q && p->inwards == q->inwards && p->SameSharding(*q)) return Want(p->value, q->value);
    Instruction* x = FromOtherRegion(a);
    Instruction* y = FromOtherRegion(b);
    if (x == nullptr && y == nullptr) return differ();
    return Want(x != nullptr ? x : a, y != nullptr ? y : b);
  }
  if (a->opcode() != b->opcode()) return differ();
  const bool flows = a->opcode() == Opcode::kGetTupleElement || a->opcode() == Opcode::kParameter ||
                     a->opcode() == Opcode::kConditional || a->opcode() == Opcode::kWhile;
  return (flows ? Elements(a, b) : Operations(a, b)) || (why_.empty() ? differ() : false);
}

bool Congruence::Operations(Instruction* a, Instruction* b) {
  if (a->HasSideEffect() || b->HasSideEffect()) {
    return Refuse(a->Describe() + " has an effect of its own");
  }
  // What a text leaves out of a literal is not known.
  if (a->opcode() == Opcode::kConstant && !a->attrs().has_literal()) return false;
  if (a->operands().size() != b->operands().size() || a->called().size() != b->called().size() ||
      !SameAttributes(*a, *b)) {
    return false;
  }
  for (size_t n = 0; n < a->called().size(); ++n) {
    Align(a->called()[n], b->called()[n], Relation::kApplied);
    Want(a->called()[n]->root(), b->called()[n]->root());
  }
  for (size_t n = 0; n < a->operands().size(); ++n) Want(a->operand(n), b->operand(n));
  return true;
}

bool Congruence::Roots(Computation* a, Computation* b, int64_t i, int64_t j) {
  if (i < 0 && j < 0) return Want(a->root(), b->root());
  Instruction* x = hlo::TupleElement(a->root(), i);
  Instruction* y = hlo::TupleElement(b->root(), j);
  return x != nullptr && y != nullptr && Want(x, y);
}

// Compares parameters, results of control flow, and elements of both.
bool Congruence::Elements(Instruction* a, Instruction* b) {
  const bool element = a->opcode() == Opcode::kGetTupleElement;
  const int64_t i = element ? a->attrs().tuple_index() : -1;
  const int64_t j = element ? b->attrs().tuple_index() : -1;
  Instruction* x = element ? a->operand(0) : a;
  Instruction* y = element ? b->operand(0) : b;
  if (x->opcode() != y->opcode()) return false;
  const bool parameters = x->opcode() == Opcode::kParameter;
  if (parameters && RelationOf(x, y) == Relation::kApplied) {
    return x->attrs().parameter_number() == y->attrs().parameter_number() && i == j;
  }
  if (parameters || x->opcode() == Opcode::kWhile) {
    if (parameters) {
      const auto of_x = callers_.find(x->parent()), of_y = callers_.find(y->parent());
      if (of_x == callers_.end() || of_y == callers_.end()) return false;
      x = of_x->second;
      y = of_y->second;
    }
    if (!element || x->called().size() != 2 || y->called().size() != 2) return false;
    Instruction* first = hlo::TupleElement(x->operand(0), i);
    Instruction* other = hlo::TupleElement(y->operand(0), j);
    if (first == nullptr || other == nullptr) return false;
    // They run equally often.
    for (size_t n = 0; n < 2; ++n) Align(x->called()[n], y->called()[n], Relation::kAligned);
    Want(x->called()[1]->root(), y->called()[1]->root());
    return Want(first, other) && Roots(x->called()[0], y->called()[0], i, j);
  }
  if (x->opcode() == Opcode::kConditional) {
    if (x->called().size() != y->called().size()) return false;
    Want(x->operand(0), y->operand(0));
    for (size_t n = 0; n < x->called().size(); ++n) {
      if (!Roots(x->called()[n], y->called()[n], i, j)) return false;
    }
    return true;
  }
  // An operation with several results.
  if (i != j) return false;
  Want(x, y);
  return true;
}

// Compares a value of the backward body with one of the forward body. False: neither an index, a
// slot nor an invariant, so that they are compared as operations.
bool Congruence::AcrossLoops(Instruction* a, Instruction* b, bool& equal) {
  const hlo::LoopFacts& backward = loops_.Of(*pair_->backward);
  const hlo::LoopFacts& forward = loops_.Of(*pair_->forward);
  if (a->shape().IsScalar()) {
    const auto x = backward.AffineOf(*a), y = forward.AffineOf(*b);
    if (x && y) {
      equal = pair_->Same(*x, *y);
      return true;
    }
  }
  if (const auto read = ReadSlotOf(a)) {
    if (const auto written = pair_->StackIn(read->array)) {
      const auto at = backward.AffineOf(*read->index), by = forward.AffineOf(*written->index);
      equal = at && by && by->scale != 0 && pair_->Same(*at, *by) && StaysIn(*by, forward, *read) &&
              Want(written->value, b);
      return true;
    }
  }
  return Invariants(a, b, equal);
}

// Compares elements that are invariant in loops. False: neither is an element of a loop.
bool Congruence::Invariants(Instruction* a, Instruction* b, bool& equal) {
  if (!IsElement(a) && !IsElement(b)) return false;
  Instruction* x = Before(a);
  Instruction* y = Before(b);
  // Both, or what one body computes and the other one is given.
  equal = (x != nullptr || y != nullptr) && Want(x != nullptr ? x : a, y != nullptr ? y : b);
  return true;
}

}  // namespace tpusim::remat
