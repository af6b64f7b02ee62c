#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "workloads/cost/schedule_graph.h"
#include "workloads/hlo/analysis/async.h"
#include "workloads/hlo/analysis/call_graph.h"
#include "workloads/hlo/analysis/execution.h"
#include "workloads/hlo/ir/annotations.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/passes/schedule/schedule.h"
#include "workloads/target/async_form.h"

namespace tpusim::passes {
namespace {

using hlo::Computation;
using hlo::Execution;
using hlo::Instruction;
using isa::WaitReason;

// The reason that keeps an end of a collective where it is.
struct End {
  bool tight = false;
  bool limited = false;             // if not tight
  const Instruction* by = nullptr;  // what it is tight to; null: an end of the computation
};

std::string_view NameOf(cost::TransferKind kind) {
  switch (kind) {
    case cost::kPermute:
      return "collective-permute";
    case cost::kGather:
      return "asynchronous all-gather";
    case cost::kOffLoaded:
      return "off-loaded collective";
    default:
      return "copy";
  }
}

class Waits {
 public:
  Waits(const Computation& computation, const target::Target& target,
        std::unordered_map<const Instruction*, WaitFact>& facts)
      : order_(computation.Order()),
        target_(target),
        limits_(cost::LimitsOf(target)),
        facts_(facts) {
    std::array<int, cost::kTransferKinds> open{};
    for (const Instruction* i : order_) {
      const absl::StatusOr<Execution> what = hlo::ExecutionOf(*i);
      what_.push_back(what.ok() ? *what : Execution::kKernel);
      if (IsStart(what_.back())) ++open[cost::KindOf(*i)];
      if (what_.back() == Execution::kDone) --open[cost::KindOf(hlo::StartOf(*i))];
      in_flight_.push_back(open);
    }
  }

  void Run() {
    std::unordered_map<const Instruction*, size_t> starts;  // looked up, never iterated
    for (size_t n = 0; n < order_.size(); ++n) {
      if (what_[n] == Execution::kCollective) {
        facts_[order_[n]] = {WaitReason::kSynchronous, target::WhySynchronous(*order_[n], target_)};
      } else if (what_[n] == Execution::kStart) {
        starts[order_[n]] = n;
      } else if (what_[n] == Execution::kDone) {
        const auto start = starts.find(&hlo::StartOf(*order_[n]));
        if (start != starts.end()) facts_[start->first] = FactOf(start->second, n);
      }
    }
  }

 private:
  static bool IsStart(Execution what) {
    return what == Execution::kStart || what == Execution::kCopyStart;
  }
  // It takes time of the main stream for itself; a synchronous collective hides nothing.
  static bool Computes(Execution what) {
    return what != Execution::kNothing && what != Execution::kScalar &&
           what != Execution::kCollective && what != Execution::kDone && !IsStart(what);
  }
  bool Blocked(size_t position, cost::TransferKind kind) const {
    return in_flight_[position][kind] >= limits_[kind];
  }

  // From the start backwards to the first operation that it could come before.
  End StartOfWindow(size_t start) const {
    std::unordered_set<const Instruction*> needed;  // looked up, never iterated
    const auto need = [&](const Instruction& i) {
      needed.insert(i.operands().begin(), i.operands().end());
      needed.insert(i.control_predecessors().begin(), i.control_predecessors().end());
    };
    need(*order_[start]);
    for (size_t n = start; n-- > 0;) {
      const Instruction& i = *order_[n];
      const bool is_needed = needed.contains(&i);
      if (what_[n] == Execution::kNothing || what_[n] == Execution::kScalar) {
        if (is_needed) need(i);
      } else if (is_needed && !IsStart(what_[n])) {
        return {true, false, &i};
      } else if (Computes(what_[n])) {
        return {false, Blocked(n, cost::KindOf(*order_[start])), &i};
      }
    }
    return {true, false, nullptr};
  }

  // From the done onwards to the first operation that it could come behind.
  End EndOfWindow(size_t done) const {
    std::unordered_set<const Instruction*> dependent = {order_[done]};  // likewise
    const auto depends = [&](const Instruction& i) {
      const auto is_dependent = [&](const Instruction* o) { return dependent.contains(o); };
      return std::any_of(i.operands().begin(), i.operands().end(), is_dependent) ||
             std::any_of(i.control_predecessors().begin(), i.control_predecessors().end(),
                         is_dependent);
    };
    for (size_t n = done + 1; n < order_.size(); ++n) {
      const Instruction& i = *order_[n];
      const bool needs_it = depends(i);
      if (what_[n] == Execution::kNothing || what_[n] == Execution::kScalar) {
        if (needs_it) dependent.insert(&i);
      } else if (needs_it) {
        return {true, false, &i};
      } else if (Computes(what_[n])) {
        return {false, Blocked(n, cost::KindOf(hlo::StartOf(*order_[done]))), &i};
      }
    }
    return {true, false, nullptr};
  }

  WaitFact FactOf(size_t start, size_t done) const {
    const End first = StartOfWindow(start), last = EndOfWindow(done);
    if ((!first.tight && !first.limited) || (!last.tight && !last.limited)) {
      const End& loose = !first.tight && !first.limited ? first : last;
      const bool for_memory =
          hlo::annotations::kOrderedForMemory.On(*order_[start]);
      return {for_memory ? WaitReason::kMemory : WaitReason::kSchedule,
              fmt::format("{} does not depend on it, but is {}", loose.by->name(),
                          &loose == &first ? "before its start" : "after its done")};
    }
    if (!first.tight || !last.tight) {
      const cost::TransferKind kind = cost::KindOf(*order_[start]);
      return {WaitReason::kResource,
              fmt::format("{} limit: {} in flight", NameOf(kind), limits_[kind])};
    }
    const std::string made = first.by == nullptr
                                 ? "it starts where the computation does"
                                 : fmt::format("{} makes what it sends", first.by->name());
    const std::string needed = last.by == nullptr ? "the computation ends with it"
                                                  : fmt::format("{} needs it", last.by->name());
    return {WaitReason::kDependency, made + ", " + needed};
  }

  const std::vector<Instruction*> order_;
  const target::Target& target_;
  const cost::TransferLimits limits_;
  std::unordered_map<const Instruction*, WaitFact>& facts_;
  std::vector<Execution> what_;                                   // by position
  std::vector<std::array<int, cost::kTransferKinds>> in_flight_;  // behind a position
};

}  // namespace

std::unordered_map<const Instruction*, WaitFact> WaitFacts(const hlo::Module& module,
                                                           const target::Target& target) {
  std::unordered_map<const Instruction*, WaitFact> facts;
  for (const Computation* computation : hlo::ControlComputations(module)) {
    Waits(*computation, target, facts).Run();
  }
  return facts;
}

}  // namespace tpusim::passes
