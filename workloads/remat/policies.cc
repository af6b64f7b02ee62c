#include "workloads/remat/policies.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <unordered_set>
#include <utility>

#include "configs/name_value.h"
#include "configs/status_macros.h"
#include "workloads/hlo/analysis/loops.h"
#include "workloads/hlo/analysis/underlying.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/transforms/checkpoint_names.h"
#include "workloads/remat/recomputed.h"
#include "workloads/remat/saved_values.h"
#include "workloads/remat/values.h"
#include "workloads/sharding/normalised/normalise.h"
#include "workloads/sharding/stated/stated_shardings.h"

namespace tpusim::remat {
namespace {

using hlo::Instruction;
using hlo::Opcode;

// A sum of this many does not overflow.
constexpr int64_t kMostBytes = int64_t{1} << 50;

constexpr std::array kPolicies = {Policy::kSaved, Policy::kOffloaded, Policy::kRecomputed};

// Brings a module into the form in which named values are searched.
absl::Status Prepare(hlo::Module& module) {
  for (hlo::Computation* computation : module.computations()) computation->set_schedule({});
  RETURN_IF_ERROR(sharding::InlinePlainCalls(module));
  GiveOwnBodies(module);
  Sweep(module);
  return absl::OkStatus();
}

// Whether the op_name is that of an operation of a backward pass.
bool IsBackward(const Instruction& i) {
  return i.op_name().find("transpose(") != std::string::npos;
}

// Whether the program itself keeps a value that it computes once, and where.
enum class Kept { kNot, kSaved, kOffloaded };
Kept KeptAs(Instruction* value) {
  std::vector<Instruction*> work = {value};
  std::unordered_set<const Instruction*> seen = {value};
  Kept kept = Kept::kNot;
  while (!work.empty()) {
    Instruction* i = work.back();
    work.pop_back();
    for (Instruction* user : i->users()) {
      const auto placement = hlo::PlacementOf(*user);
      if (placement == hlo::Placement::kToHost) return Kept::kOffloaded;
      if (IsBackward(*user)) kept = Kept::kSaved;
      const bool forwards = hlo::Underlying(user) == hlo::Underlying(value) ||
                            user->opcode() == Opcode::kTuple ||
                            user->opcode() == Opcode::kOptBarrier ||
                            user->opcode() == Opcode::kReducePrecision;
      // A slot of a stack.
      if (user->opcode() == Opcode::kReshape || user->opcode() == Opcode::kBroadcast) {
        for (const Instruction* update : user->users()) {
          if (update->opcode() == Opcode::kDynamicUpdateSlice && update->operand(1) == user) {
            kept = Kept::kSaved;
          }
        }
      }
      if (forwards && seen.insert(user).second) work.push_back(user);
    }
  }
  return kept;
}

// Multiplies counts of loops, which programs may state as they like, without overflow.
int64_t Product(int64_t a, int64_t b) {
  int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<int64_t>::max() / 2 : product;
}

int64_t TimesOf(const hlo::Computation* computation, const Callers& callers) {
  int64_t times = 1;
  for (auto at = callers.find(computation); at != callers.end();
       at = callers.find(at->second->parent())) {
    times = Product(times, std::max<int64_t>(hlo::TripCount(*at->second).value_or(1), 1));
  }
  return std::min<int64_t>(times, std::numeric_limits<int32_t>::max());
}

std::vector<NameUse> UsesOf(const std::vector<NamedValue>& values, const Callers& callers) {
  std::map<std::string, size_t> place;
  std::vector<NameUse> uses;
  std::set<const Instruction*> forward;
  for (const NamedValue& v : values) {
    if (v.forward != nullptr) forward.insert(v.forward);
  }
  std::set<const Instruction*> counted;
  for (const NamedValue& v : values) {
    const auto [at, is_new] = place.try_emplace(v.name, uses.size());
    if (is_new) uses.emplace_back().name = v.name;
    NameUse& use = uses[at->second];
    const int64_t times = TimesOf(v.value->parent(), callers);
    const auto count = [&] {
      use.values += times;
      use.bytes += Bytes(std::min(Product(v.value->shape().ByteSize().value(), times), kMostBytes));
    };
    if (v.recomputed()) {
      use.recomputed += times;
      if (use.refused.empty()) use.refused = v.refused;
      // Its forward value may have no name any more.
      if (v.forward != nullptr && !hlo::CheckpointName(*v.forward) &&
          counted.insert(v.forward).second) {
        count();
      }
      continue;
    }
    count();
    if (forward.contains(v.value)) continue;
    const Kept kept = KeptAs(v.value);
    if (kept == Kept::kSaved) use.saved += times;
    if (kept == Kept::kOffloaded) use.offloaded += times;
  }
  return uses;
}

absl::Status CheckNames(const std::vector<StatedPolicy>& policies,
                        const std::vector<NameUse>& uses) {
  for (const StatedPolicy& stated : policies) {
    const bool any = std::ranges::any_of(
        uses, [&](const NameUse& use) { return sharding::NameFits(stated.name, use.name); });
    if (any) continue;
    std::vector<std::string> names;
    for (const NameUse& use : uses) names.push_back(use.name);
    return UserError(
        fmt::format("--remat {}: the program has no value of that name; {}", stated.text,
                    names.empty() ? "it has no names (jax.ad_checkpoint.checkpoint_name) at all"
                                  : fmt::format("its names are {}", fmt::join(names, ", "))));
  }
  return absl::OkStatus();
}

const StatedPolicy* PolicyOf(const std::string& name, const std::vector<StatedPolicy>& policies) {
  const auto found = std::ranges::find_if(
      policies, [&](const StatedPolicy& stated) { return sharding::NameFits(stated.name, name); });
  return found == policies.end() ? nullptr : &*found;
}

// Checks that the program does not keep the name in another way already.
absl::Status CheckKept(const NameUse& use, const StatedPolicy& stated) {
  const bool saved = use.saved > 0 && stated.policy != Policy::kSaved;
  const bool offloaded = use.offloaded > 0 && stated.policy != Policy::kOffloaded;
  if (!saved && !offloaded) return absl::OkStatus();
  return UserError(fmt::format(
      "--remat {}: the program has '{}' {} already; export it with full rematerialisation "
      "(jax.checkpoint without a policy)",
      stated.text, use.name, saved ? "saved" : "off-loaded"));
}

struct Chosen {
  const NamedValue* value = nullptr;
  bool on_host = false;
};

// The recomputed values that the policies keep.
absl::StatusOr<std::vector<Chosen>> ChosenOf(const std::vector<NamedValue>& values,
                                             const std::vector<StatedPolicy>& policies) {
  std::unordered_set<const Instruction*> replaced;
  std::vector<std::pair<const NamedValue*, const StatedPolicy*>> candidates;
  for (const NamedValue& v : values) {
    const StatedPolicy* stated = PolicyOf(v.name, policies);
    if (stated == nullptr || stated->policy == Policy::kRecomputed || !v.recomputed()) continue;
    candidates.emplace_back(&v, stated);
    replaced.insert(v.value);
  }
  std::vector<Chosen> chosen;
  for (const auto& [v, stated] : candidates) {
    // Others that are kept may leave nothing to compute it for.
    if (!IsRead(v->value, replaced)) continue;
    if (!v->refused.empty()) {
      return UserError(fmt::format(
          "--remat {}: {} is computed again, but not seen to be a value of the forward pass: {}",
          stated->text, v->value->Describe(), v->refused));
    }
    chosen.push_back({v, stated->policy == Policy::kOffloaded});
  }
  return chosen;
}

std::vector<Chosen> InForwardOrder(std::vector<Chosen> chosen, const hlo::Module& module) {
  std::map<const Instruction*, size_t> place;  // looked up, never iterated
  for (const hlo::Computation* computation : module.PostOrder()) {
    for (const Instruction* i : computation->PostOrder()) place.emplace(i, place.size());
  }
  std::ranges::stable_sort(chosen, {}, [&](const Chosen& c) { return place.at(c.value->forward); });
  return chosen;
}

}  // namespace

std::string_view ToString(Policy policy) {
  switch (policy) {
    case Policy::kSaved:
      return "saved";
    case Policy::kOffloaded:
      return "offloaded";
    case Policy::kRecomputed:
      return "recomputed";
  }
  return "";
}

absl::StatusOr<StatedPolicy> ParseStatedPolicy(std::string_view text) {
  if (const auto parts = configs::ParseNameAndValue(text)) {
    for (const Policy policy : kPolicies) {
      if (parts->value == ToString(policy)) {
        return StatedPolicy{std::string(parts->name), policy, std::string(text)};
      }
    }
  }
  return UserError(fmt::format(
      "\"{}\" is not NAME=saved, NAME=offloaded or NAME=recomputed, such as 'context=saved'",
      text));
}

absl::Status StatePolicies(const std::vector<StatedPolicy>& policies, hlo::Module& module) {
  if (policies.empty()) return absl::OkStatus();
  RETURN_IF_ERROR(Prepare(module));
  const std::vector<NamedValue> values = FindNamedValues(module);
  const std::vector<NameUse> uses = UsesOf(values, CallersOf(module));
  RETURN_IF_ERROR(CheckNames(policies, uses));
  for (const NameUse& use : uses) {
    if (const StatedPolicy* stated = PolicyOf(use.name, policies)) {
      RETURN_IF_ERROR(CheckKept(use, *stated));
    }
  }
  ASSIGN_OR_RETURN(const std::vector<Chosen> chosen, ChosenOf(values, policies));
  ResidualSaver saver;
  for (const Chosen& c : InForwardOrder(chosen, module)) saver.Residual(*c.value, c.on_host);
  for (const Chosen& c : chosen) RETURN_IF_ERROR(saver.Keep(*c.value, c.on_host));
  Sweep(module);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<NameUse>> NamesOf(const hlo::Module& module) {
  const std::unique_ptr<hlo::Module> copy = module.Clone();
  RETURN_IF_ERROR(Prepare(*copy));
  return UsesOf(FindNamedValues(*copy), CallersOf(*copy));
}

std::string ToString(const std::vector<NameUse>& names) {
  if (names.empty()) {
    return "the program has no named values (jax.ad_checkpoint.checkpoint_name)\n";
  }
  size_t width = 4;
  for (const NameUse& use : names) width = std::max(width, use.name.size());
  std::string text = fmt::format("{:<{}}  {:>6}  {:>16}  in the backward pass\n", "name", width,
                                 "values", "bytes");
  for (const NameUse& use : names) {
    std::vector<std::string> now;
    if (use.saved > 0) now.push_back(fmt::format("{} saved", use.saved));
    if (use.offloaded > 0) now.push_back(fmt::format("{} offloaded", use.offloaded));
    if (use.recomputed > 0) now.push_back(fmt::format("{} recomputed", use.recomputed));
    if (now.empty()) now.emplace_back("not needed");
    if (!use.refused.empty()) now.push_back("stays so: " + use.refused);
    text += fmt::format("{:<{}}  {:>6}  {:>16}  {}\n", use.name, width, use.values,
                        use.bytes.value(), fmt::join(now, ", "));
  }
  return text;
}

}  // namespace tpusim::remat
