#include "workloads/remat/recomputed.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "workloads/hlo/analysis/loops.h"
#include "workloads/hlo/analysis/underlying.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/transforms/checkpoint_names.h"
#include "workloads/hlo/transforms/loop_carries.h"
#include "workloads/remat/congruence.h"
#include "workloads/remat/values.h"

namespace tpusim::remat {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

// JAX's name for the part of a backward pass that recomputes.
constexpr std::string_view kRecomputed = "rematted_computation";

// Whether JAX marks a value as recomputed; op_names in a manual region continue that of its call.
bool IsMarked(const Instruction* value, const Callers& callers) {
  while (value->op_name().find(kRecomputed) == std::string::npos) {
    const auto caller = callers.find(value->parent());
    if (caller == callers.end() || caller->second->opcode() == Opcode::kWhile) return false;
    value = caller->second;
  }
  return true;
}

uint64_t Mixed(uint64_t a, uint64_t b) {
  a ^= b + 0x9e3779b97f4a7c15ULL + (a << 6) + (a >> 2);
  return a * 0xff51afd7ed558ccdULL;
}

uint64_t HashOf(const hlo::Shape& shape) {
  auto hash = static_cast<uint64_t>(shape.element_type);
  for (const int64_t dim : shape.dims) hash = Mixed(hash, static_cast<uint64_t>(dim));
  return hash;
}

// Hashes of the values of a computation, equal for equal values, also for those of a forward and a
// backward loop: few pairs are left to prove equal.
class Likeness {
 public:
  // `loop` is null where the computation is no body of one.
  Likeness(const Computation& computation, const Instruction* loop, bool is_entry)
      : loop_(loop), is_entry_(is_entry) {
    const size_t elements = loop != nullptr ? loop->shape().tuple.size() : 0;
    for (size_t n = 0; n < elements; ++n) {
      const auto stack = WrittenSlotOf(*loop, static_cast<int64_t>(n));
      if (stack) left_.insert(hlo::Underlying(stack->value));
    }
    for (Instruction* i : computation.PostOrder()) {
      Instruction* value = hlo::Underlying(i);
      const ValueHash hash_of = value == i ? HashOfValue(i) : hashes_.at(value);
      hashes_.emplace(i, hash_of);
      if (value == i && i->shape().IsArray()) like_[hash_of.hash].push_back(i);
      position_.emplace(i, position_.size());
    }
  }
  uint64_t Of(const Instruction* value) const { return hashes_.at(value).hash; }
  const std::vector<Instruction*>& Like(uint64_t hash) const {
    static const std::vector<Instruction*> none;
    const auto found = like_.find(hash);
    return found == like_.end() ? none : found->second;
  }
  size_t PositionOf(const Instruction* value) const { return position_.at(value); }

 private:
  struct ValueHash {
    uint64_t hash = 0;
    // Equal in all iterations: one loop may compute a value that the other one is given.
    bool invariant = false;
  };

  ValueHash HashOfValue(Instruction* i) const {
    const uint64_t shape = HashOf(i->shape());
    if (i->opcode() == Opcode::kParameter) {
      return {is_entry_ ? Mixed(shape, static_cast<uint64_t>(i->id())) : shape, false};
    }
    if (i->opcode() == Opcode::kGetTupleElement) {
      const bool carried = loop_ != nullptr && i->operand(0)->opcode() == Opcode::kParameter;
      return {shape, carried && hlo::IsInvariant(*loop_, i->attrs().tuple_index())};
    }
    if (i->opcode() == Opcode::kCall || i->opcode() == Opcode::kWhile ||
        i->opcode() == Opcode::kConditional || BoundaryOf(*i)) {
      return {shape, false};
    }
    bool invariant = loop_ != nullptr && !i->HasSideEffect();
    uint64_t hash = Mixed(shape, static_cast<uint64_t>(i->opcode()));
    for (const Instruction* operand : i->operands()) {
      const ValueHash& of = hashes_.at(operand);
      invariant = invariant && of.invariant;
      hash = Mixed(hash, of.hash);
    }
    // Indices go by numbers of iterations; what is in a slot may not be in the other loop.
    const bool leaf = invariant || left_.contains(i) ||
                      (!is_entry_ && (i->shape().IsScalar() || ReadSlotOf(i) ||
                                      i->opcode() == Opcode::kDynamicSlice));
    return {leaf ? shape : hash, invariant};
  }

  const Instruction* const loop_;
  const bool is_entry_;
  std::unordered_set<const Instruction*> left_;  // for another loop, which reads it from a slot
  std::unordered_map<const Instruction*, ValueHash> hashes_;
  std::unordered_map<uint64_t, std::vector<Instruction*>> like_;
  std::unordered_map<const Instruction*, size_t> position_;
};

class NamedValueFinder {
 public:
  explicit NamedValueFinder(hlo::Module& module)
      : module_(module), callers_(CallersOf(module)), loops_(module) {}

  std::vector<NamedValue> All() {
    std::vector<NamedValue> found;
    for (Computation* computation : module_.PostOrder()) {
      for (Instruction* i : computation->PostOrder()) {
        if (const auto name = hlo::CheckpointName(*i)) found.push_back(Named(*name, i));
      }
    }
    return found;
  }

 private:
  const Likeness& Values(const Computation* computation) {
    auto [at, is_new] = values_.try_emplace(computation, nullptr);
    if (is_new) {
      const auto caller = callers_.find(computation);
      const bool is_body = caller != callers_.end() && caller->second->opcode() == Opcode::kWhile &&
                           caller->second->called()[0] == computation;
      at->second = std::make_unique<Likeness>(*computation, is_body ? caller->second : nullptr,
                                              computation == module_.entry());
    }
    return *at->second;
  }

  NamedValue Named(const std::string& name, Instruction* value) {
    NamedValue named;
    named.name = name;
    named.value = value;
    std::optional<Difference> nearest;
    if (HomeOf(value->parent(), callers_) != value->parent()) {
      if (IsMarked(value, callers_)) named.refused = "it is inside of a shard_map or a branch";
      return named;
    }
    const bool found = InForwardLoop(named, nearest) || InSameComputation(named, nearest);
    if (found) {
      named.barrier = BarrierOf(named);
      return named;
    }
    if (!IsMarked(value, callers_)) return named;
    named.refused = nearest ? nearest->why : "nothing in the forward pass is like it";
    return named;
  }

  // Searches the values with the hash of `named`. `loops` pairs the loops if they are in another
  // one.
  bool AmongThose(const Computation* computation, const LoopPair* loops, NamedValue& named,
                  std::optional<Difference>& nearest) {
    Instruction* operand = named.value->operand(0);
    Instruction* computed = hlo::Underlying(operand);
    const Likeness& own = Values(named.value->parent());
    const Likeness& values = Values(computation);
    std::vector<Instruction*> candidates;
    for (Instruction* like : values.Like(own.Of(computed))) {
      if (loops == nullptr && own.PositionOf(like) >= own.PositionOf(computed)) continue;
      candidates.push_back(like);
    }
    // Those with the name first; else in order.
    std::ranges::stable_partition(
        candidates, [&](Instruction* candidate) { return NamedAs(named, candidate) != nullptr; });
    Congruence congruence(callers_, loops_, loops);
    for (Instruction* candidate : candidates) {
      auto difference = congruence.Find(computed, candidate);
      if (!difference) {
        Instruction* names = NamedAs(named, candidate);
        named.forward = names != nullptr ? names : candidate;
        if (loops != nullptr) named.loops = *loops;
        return true;
      }
      if (!nearest || difference->proven > nearest->proven) nearest = std::move(difference);
    }
    return false;
  }

  // The instruction that gives a value of the forward pass the name of `named`.
  Instruction* NamedAs(const NamedValue& named, Instruction* value) {
    std::vector<Instruction*> work = {value};
    while (!work.empty()) {
      Instruction* i = work.back();
      work.pop_back();
      for (Instruction* user : i->users()) {
        if (user == named.value || hlo::Underlying(user) != value) continue;
        const bool before = user->parent() != named.value->parent() ||
                            Values(user->parent()).PositionOf(user) <
                                Values(user->parent()).PositionOf(named.value);
        if (before && hlo::CheckpointName(*user) == named.name) return user;
        if (before) work.push_back(user);
      }
    }
    return nullptr;
  }

  bool InSameComputation(NamedValue& named, std::optional<Difference>& nearest) {
    // A value that only comes in through the barrier is there already.
    std::vector<Instruction*> passed;
    Instruction* computed = hlo::Underlying(named.value->operand(0), &passed);
    std::erase_if(passed, [](const Instruction* i) { return hlo::CheckpointName(*i).has_value(); });
    if (!passed.empty() && IsMarked(named.value, callers_)) {
      Instruction* names = NamedAs(named, computed);
      named.forward = names != nullptr ? names : computed;
      return true;
    }
    return AmongThose(named.value->parent(), nullptr, named, nearest);
  }

  bool InForwardLoop(NamedValue& named, std::optional<Difference>& nearest) {
    const auto caller = callers_.find(named.value->parent());
    if (caller == callers_.end() || caller->second->opcode() != Opcode::kWhile) return false;
    for (const LoopPair& loops : PairsOf(caller->second)) {
      if (AmongThose(loops.forward->called()[0], &loops, named, nearest)) return true;
    }
    return false;
  }

  const std::vector<LoopPair>& PairsOf(Instruction* backward) {
    auto [at, is_new] = pairs_.try_emplace(backward);
    hlo::LoopCarry carry;
    if (!is_new || !hlo::LoopCarry::Find(backward, &carry)) return at->second;
    const Likeness& around = Values(backward->parent());
    std::unordered_set<const Instruction*> tried;
    for (Instruction* i : backward->operand(0)->operands()) {
      Instruction* left = hlo::Underlying(i);
      if (left->opcode() != Opcode::kGetTupleElement) continue;
      Instruction* loop = left->operand(0);
      if (around.PositionOf(loop) >= around.PositionOf(backward) || !tried.insert(loop).second ||
          !hlo::LoopCarry::Find(loop, &carry)) {
        continue;
      }
      if (auto pair = PairOf(loop, backward, loops_)) at->second.push_back(*std::move(pair));
    }
    return at->second;
  }

  // The barrier with most values among those in front of the recomputation: that of jax.checkpoint
  // has all values that it reads. A saved value must be computed before it.
  Instruction* BarrierOf(const NamedValue& named) {
    const Instruction* before = named.loops ? named.loops->read_at : named.forward;
    const Likeness& order = Values(named.value->parent());
    std::vector<Instruction*> work = {named.value->operand(0)}, barriers;
    std::unordered_set<const Instruction*> seen;
    while (!work.empty()) {
      Instruction* i = work.back();
      work.pop_back();
      if (!seen.insert(i).second) continue;
      if (order.PositionOf(i) < order.PositionOf(before)) continue;
      if (i->opcode() == Opcode::kOptBarrier && i->shape().IsTuple()) {
        barriers.push_back(i);
        continue;
      }
      for (Instruction* operand : i->operands()) work.push_back(operand);
    }
    const auto size = [](const Instruction* barrier) { return barrier->shape().tuple.size(); };
    const auto largest = std::ranges::max_element(barriers, {}, size);
    return largest == barriers.end() ? nullptr : *largest;
  }

  hlo::Module& module_;
  const Callers callers_;
  hlo::ModuleLoops loops_;
  std::unordered_map<const Computation*, std::unique_ptr<Likeness>> values_;
  std::unordered_map<const Instruction*, std::vector<LoopPair>> pairs_;
};

}  // namespace

std::vector<NamedValue> FindNamedValues(hlo::Module& module) {
  return NamedValueFinder(module).All();
}

}  // namespace tpusim::remat
