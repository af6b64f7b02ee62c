#include "workloads/passes/rematerialize/rematerialize.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "configs/status_macros.h"
#include "workloads/buffers/live_bytes.h"
#include "workloads/buffers/memory_plan.h"
#include "workloads/hlo/analysis/alias.h"
#include "workloads/hlo/analysis/async.h"
#include "workloads/hlo/analysis/underlying.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/rules/branches.h"
#include "workloads/passes/rematerialize/limits.h"
#include "workloads/passes/rematerialize/reasons.h"

namespace tpusim::passes {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

// A range of moments, both ends included.
struct Stretch {
  int64_t first = 0, last = -1;
  bool Overlaps(const Stretch& other) const { return first <= other.last && other.first <= last; }
};

// A value that nothing reads between two of its readers (or before the first).
struct Recomputation {
  int32_t buffer = -1;
  RecomputedValue value;
  Stretch unread;
  Instruction* before = nullptr;      // the reader for which it is computed again
  std::vector<Instruction*> readers;  // `before` and all behind it, in order
  // Buffers of operands that have to live until then, and for how much longer.
  std::vector<std::pair<int32_t, Stretch>> longer;
  std::vector<int32_t> operands;  // buffers
  bool moved = false;             // computed later instead of again: nothing read it before
  Bytes saved{0};
  Picoseconds cost{0};
};

// One plan of the program and the recomputations that it allows.
class Round {
 public:
  Round(hlo::Module& module, const PassContext& context, Bytes limit)
      : module_(module),
        context_(context),
        calls_(context.facts->CallsOf(module)),
        plan_(context.facts->PlanOf(module, context.target)),
        limit_(limit),
        lives_(plan_.LivesIn(hlo::kHbmSpace)),
        live_(buffers::LiveAt(lives_, std::ssize(plan_.moments))),
        uses_of_(BuffersByInstruction(plan_)) {}

  Bytes peak() const { return plan_.LivePeak(); }
  bool Fits() const { return peak() <= limit_; }

  // Returns whether anything changed.
  absl::StatusOr<bool> Run() {
    NoteRewritten();
    ASSIGN_OR_RETURN(executions_, hlo::ExecutionsOf(calls_, [&](const Instruction& loop) {
                       return context_.cost.TripsOf(loop);
                     }));
    RETURN_IF_ERROR(FindCandidates());
    // Zero costs first; per byte of what is saved.
    const auto rank = [](const Recomputation& c) {
      return std::tuple(static_cast<double>(c.cost.value()) / static_cast<double>(c.saved.value()),
                        -c.saved.value(), c.unread.first, c.buffer);
    };
    std::sort(candidates_.begin(), candidates_.end(),
              [&](const Recomputation& a, const Recomputation& b) { return rank(a) < rank(b); });
    const Bytes before = live_.Most();
    std::vector<const Recomputation*> chosen;
    for (const Recomputation& candidate : candidates_) {
      if (live_.Most() <= limit_) break;
      if (live_.Most(candidate.unread.first, candidate.unread.last) <= limit_) continue;
      if (!IsFree(candidate)) continue;
      Take(candidate);
      chosen.push_back(&candidate);
    }
    if (live_.Most() >= before) return false;
    Apply(WithoutNeedless(chosen));
    return true;
  }

 private:
  // The buffers that an instruction makes, then those that it reads; each once.
  static std::unordered_map<const Instruction*, std::vector<int32_t>> BuffersByInstruction(
      const buffers::MemoryPlan& plan) {
    std::unordered_map<const Instruction*, std::vector<int32_t>> buffers;
    for (const hlo::BufferUse& use : plan.uses) buffers[use.by].push_back(use.buffer);
    return buffers;
  }

  Stretch LifeOf(int32_t buffer) const { return {lives_[buffer].begin, lives_[buffer].end - 1}; }

  // Marks buffers that another instruction than their maker writes.
  void NoteRewritten() {
    rewritten_.resize(plan_.buffers.size());
    for (const hlo::BufferUse& use : plan_.uses) {
      const bool makes = use.by == plan_.buffers[use.buffer].made_by;
      if (use.writes && !makes) rewritten_[use.buffer] = true;
    }
  }

  absl::Status FindCandidates() {
    std::unordered_map<const Computation*, std::unordered_map<const Instruction*, size_t>> places;
    for (const Computation* computation : calls_.control()) {
      auto& of = places[computation];
      for (const Instruction* i : computation->Order()) of.emplace(i, of.size());
    }
    for (size_t n = 0; n < plan_.buffers.size(); ++n) {
      const hlo::LiveBuffer& b = plan_.buffers[n];
      if (b.space != hlo::kHbmSpace || b.argument || b.result || rewritten_[n]) continue;
      const Stretch life = LifeOf(static_cast<int32_t>(n));
      if (live_.Most(life.first, life.last) <= limit_) continue;
      const auto at = places.find(b.made_by->parent());
      if (at == places.end()) continue;
      RETURN_IF_ERROR(AddCandidates(static_cast<int32_t>(n), at->second));
    }
    return absl::OkStatus();
  }

  absl::Status AddCandidates(int32_t buffer,
                             const std::unordered_map<const Instruction*, size_t>& places) {
    // The plan reads the module, the pass changes it.
    const RecomputedValue value{const_cast<Instruction*>(plan_.buffers[buffer].made_by),
                                plan_.buffers[buffer].leaf};
    if (!CanBeRecomputed(value)) return absl::OkStatus();
    std::optional<std::vector<Instruction*>> readers = ReadersOf(value);
    if (!readers) return absl::OkStatus();
    const std::vector<int64_t>& moments = plan_.computations.at(value.maker->parent()).moments;
    // What a start reads it needs until its done.
    std::map<size_t, Instruction*> by_place;  // null: nothing reads anew
    for (Instruction* reader : *readers) {
      by_place[places.at(reader)] = reader;
      if (!hlo::IsAsyncStart(reader->opcode())) continue;
      if (const Instruction* done = hlo::DoneOf(*reader))
        by_place.emplace(places.at(done), nullptr);
    }
    size_t previous = places.at(value.maker);
    for (auto it = by_place.begin(); it != by_place.end(); ++it) {
      const size_t from = std::exchange(previous, it->first);
      if (it->second == nullptr || it->first <= from + 1) continue;
      Recomputation c;
      c.buffer = buffer;
      c.value = value;
      c.before = it->second;
      c.unread = {moments[from] + 1, moments[it->first] - 1};
      if (live_.Most(c.unread.first, c.unread.last) <= limit_) continue;
      for (auto later = it; later != by_place.end(); ++later) {
        if (later->second != nullptr) c.readers.push_back(later->second);
      }
      c.moved = from == places.at(value.maker);
      RETURN_IF_ERROR(Price(moments[it->first], c));
      if (c.saved > Bytes(0)) candidates_.push_back(std::move(c));
    }
    return absl::OkStatus();
  }

  // Sets cost and bytes saved; these stay 0 if the value cannot be computed at this moment.
  absl::Status Price(int64_t moment, Recomputation& c) {
    Bytes saved = plan_.buffers[c.buffer].bytes;
    const std::vector<size_t> numbers = OperandsFor(c.value);
    for (const size_t n : numbers) {
      const Instruction& operand = *c.value.maker->operand(n);
      for (const int32_t b : BuffersOf(operand, *c.value.maker)) {
        if (rewritten_[b] && !IsForwarded(operand)) return absl::OkStatus();
        c.operands.push_back(b);
        const Stretch life = LifeOf(b);
        if (life.last >= moment || plan_.buffers[b].space != hlo::kHbmSpace) continue;
        c.longer.push_back({b, {life.last + 1, moment}});
        saved -= plan_.buffers[b].bytes;
      }
    }
    c.saved = saved;
    if (c.moved) return absl::OkStatus();
    ASSIGN_OR_RETURN(const cost::Work work, context_.cost.WorkOf(*c.value.maker));
    c.cost = work.alone() * executions_[c.value.maker->parent()];
    return absl::OkStatus();
  }

  // The buffers of an operand among those that the instruction reads; all of them if they cannot be
  // distinguished.
  std::vector<int32_t> BuffersOf(const Instruction& operand, const Instruction& reader) const {
    std::vector<int32_t> all, own;
    for (const int32_t buffer : uses_of_.at(&reader)) {
      const Instruction* made_by = plan_.buffers[buffer].made_by;
      if (made_by == &reader) continue;
      all.push_back(buffer);
      const Instruction* name = &operand;
      while (hlo::OnlyNames(*name) && name->operands().size() == 1 && name != made_by) {
        name = name->operand(0);
      }
      if (name == made_by) own.push_back(buffer);
    }
    return own.empty() ? all : own;
  }

  // Whether the operand is an element of the carry that a loop forwards.
  bool IsForwarded(const Instruction& operand) const {
    const Instruction* name = &operand;
    while (hlo::NamesOperand(*name)) name = name->operand(0);
    const int64_t element = hlo::CarriedElement(*name, *name->parent());
    const Instruction* loop = element < 0 ? nullptr : calls_.LoopOf(*name->parent());
    return loop != nullptr && hlo::ForwardsElement(*loop, element);
  }

  // Whether no other choice of this round conflicts: nothing reads the value meanwhile, and its
  // operands are live when it is computed.
  bool IsFree(const Recomputation& c) const {
    const auto needed = needed_.find(c.buffer);
    if (needed != needed_.end()) {
      for (const Stretch& at : needed->second) {
        if (at.Overlaps(c.unread)) return false;
      }
    }
    const Stretch then = {c.unread.last, c.unread.last + 1};
    for (const int32_t b : c.operands) {
      const auto dropped = dropped_.find(b);
      if (dropped == dropped_.end()) continue;
      for (const Stretch& gap : dropped->second) {
        if (gap.Overlaps(then)) return false;
      }
    }
    return true;
  }

  void Take(const Recomputation& c) {
    live_.Add(c.unread.first, c.unread.last, Bytes(0) - plan_.buffers[c.buffer].bytes);
    for (const auto& [b, more] : c.longer) live_.Add(more.first, more.last, plan_.buffers[b].bytes);
    dropped_[c.buffer].push_back(c.unread);
    for (const int32_t b : c.operands) needed_[b].push_back({c.unread.last, c.unread.last + 1});
  }

  // Drops choices that do not lower the peak any further, the dearest first.
  std::vector<const Recomputation*> WithoutNeedless(
      const std::vector<const Recomputation*>& chosen) {
    const Bytes reached = std::max(limit_, live_.Most());
    std::vector<const Recomputation*> needed;
    for (auto it = chosen.rbegin(); it != chosen.rend(); ++it) {
      const Recomputation& c = **it;
      const Bytes bytes = plan_.buffers[c.buffer].bytes;
      live_.Add(c.unread.first, c.unread.last, bytes);
      if (live_.Most(c.unread.first, c.unread.last) <= reached) continue;
      live_.Add(c.unread.first, c.unread.last, Bytes(0) - bytes);
      needed.push_back(&c);
    }
    return needed;
  }

  void Apply(const std::vector<const Recomputation*>& chosen) {
    // Later stretches of a value last: their readers take the later copy.
    std::vector<const Recomputation*> in_order(chosen);
    std::ranges::stable_sort(in_order, {}, [](const Recomputation* c) {
      return std::pair(c->buffer, c->unread.first);
    });
    std::unordered_map<const Instruction*, std::vector<Instruction*>> in_front;  // looked up
    std::vector<Computation*> changed;
    RecomputedValue value;
    for (size_t n = 0; n < in_order.size(); ++n) {
      const Recomputation& c = *in_order[n];
      // From the second stretch on it is the copy before that is no longer read.
      const bool again = n > 0 && in_order[n - 1]->buffer == c.buffer;
      if (!again) value = c.value;
      Instruction* copy = Recompute(c.value);
      std::vector<Instruction*>& added = in_front[c.before];
      added.push_back(copy);
      const std::vector<Instruction*> names = Redirect(value, copy, c.readers);
      added.insert(added.end(), names.begin(), names.end());
      value = {copy, 0};
      if (changed.empty() || changed.back() != copy->parent()) changed.push_back(copy->parent());
      Explain(c, *copy);
    }
    std::unordered_set<const Computation*> done;
    for (Computation* computation : changed) {
      if (done.insert(computation).second) UpdateSchedule(*computation, in_front);
    }
  }

  static void UpdateSchedule(
      Computation& computation,
      const std::unordered_map<const Instruction*, std::vector<Instruction*>>& in_front) {
    std::vector<const Instruction*> gone;
    const std::vector<Instruction*> before = computation.schedule();
    computation.set_schedule({});
    computation.RemoveDead(&gone);
    const std::unordered_set<const Instruction*> dead(gone.begin(), gone.end());
    std::vector<Instruction*> schedule;
    const auto append = [&](Instruction* i) {
      if (!dead.contains(i)) schedule.push_back(i);
    };
    for (Instruction* i : before) {
      const auto added = in_front.find(i);
      if (added != in_front.end()) {
        for (Instruction* copy : added->second) append(copy);
      }
      append(i);
    }
    computation.set_schedule(std::move(schedule));
  }

  void Explain(const Recomputation& c, const Instruction& copy) {
    context_.records.Add(c.moved ? reasons::kMoved : reasons::kRecomputed, c.value.maker->name(),
                         {{"copy", copy.name()},
                          {"user", c.before->name()},
                          {"saved_bytes", c.saved.value()},
                          {"cost_us", ToMicroseconds(c.cost)}});
  }

  hlo::Module& module_;
  const PassContext& context_;
  const hlo::CallGraph& calls_;
  const buffers::MemoryPlan& plan_;
  const Bytes limit_;                             // of what is live
  const std::vector<buffers::HeapBuffer> lives_;  // by buffer
  buffers::LiveBytes live_;
  std::vector<bool> rewritten_;  // by buffer
  // These maps are looked up, never iterated.
  std::unordered_map<const Instruction*, std::vector<int32_t>> uses_of_;
  std::unordered_map<const Computation*, int64_t> executions_;
  std::vector<Recomputation> candidates_;
  std::unordered_map<int32_t, std::vector<Stretch>> dropped_, needed_;  // by buffer
};

}  // namespace

absl::StatusOr<bool> Rematerialize(hlo::Module& module, const PassContext& context,
                                   int64_t percent) {
  if (module.entry()->schedule().empty()) return false;
  if (percent == 0) percent = context.target.policy().rematerialized_percent;
  // number: percent
  const Bytes limit(context.target.Usable(hlo::kHbmSpace).value() * percent / 100);
  if (const Bytes peak = context.facts->PlanOf(module, context.target).LivePeak(); peak <= limit) {
    context.records.Add(reasons::kFits, module.name(),
                        {{"peak_bytes", peak.value()}, {"limit_bytes", limit.value()}});
    return false;
  }
  bool changed = false;
  Bytes lowest(0);  // before the last round
  for (int round = 0;; ++round) {
    Round next(module, context, limit);
    if (next.Fits() || (changed && next.peak() >= lowest)) break;
    if (round == limits::kRematerializeRounds.most()) {
      limits::kRematerializeRounds.Reached();
      break;
    }
    lowest = next.peak();
    ASSIGN_OR_RETURN(const bool dropped, next.Run());
    if (!dropped) break;
    context.facts->Forget();
    changed = true;
  }
  return changed;
}

}  // namespace tpusim::passes
