#include "workloads/passes/annotate/annotate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "configs/status_macros.h"
#include "workloads/hlo/analysis/donation.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/rules/assumed_trips.h"
#include "workloads/hlo/rules/branches.h"
#include "workloads/kernels/opaque/body_cost.h"
#include "workloads/kernels/opaque/custom_cost.h"
#include "workloads/passes/annotate/reasons.h"

namespace tpusim::passes {
namespace {

// Returns all frontend attributes of a module: equal before and after a pass that has written
// nothing new.
std::vector<std::string> WrittenAttributes(const hlo::Module& module) {
  std::vector<std::string> written;
  for (const hlo::Computation* computation : module.computations()) {
    for (const hlo::Instruction* i : computation->instructions()) {
      const auto& attributes = i->attrs().frontend_attributes().map();
      if (attributes.empty()) continue;
      written.push_back(i->name());
      for (const auto& [key, value] : std::map(attributes.begin(), attributes.end())) {
        written.push_back(key);
        written.push_back(value);
      }
    }
  }
  return written;
}

// Returns the names of all instructions of an opcode.
std::vector<std::string> NamesOf(const hlo::Module& module, hlo::Opcode opcode) {
  std::vector<std::string> names;
  for (const hlo::Computation* computation : module.computations()) {
    for (const hlo::Instruction* i : computation->instructions()) {
      if (i->opcode() == opcode) names.push_back(i->name());
    }
  }
  return names;
}

}  // namespace

void WarnOfNoEffect(const Records& records, const std::string& option,
                    const std::vector<std::string>& names, std::string_view none,
                    std::string_view several) {
  records.Add(
      reasons::kNoEffect, option,
      {{"why", names.empty() ? fmt::format("the program has {}", none)
                             : fmt::format("its {} are {}", several, fmt::join(names, ", "))}});
}

absl::StatusOr<bool> StateArguments(hlo::Module& module, const PassContext& context) {
  const std::vector<hlo::Instruction*> arguments = module.entry()->parameters();
  const std::vector<std::string>& memories = context.stated->argument_memories;
  if (!memories.empty() && memories.size() != arguments.size()) {
    return UserError(fmt::format("the workload names memory kinds for {} arguments and has {}",
                                 memories.size(), arguments.size()));
  }
  bool changed = false;
  for (size_t n = 0; n < memories.size(); ++n) {
    hlo::Shape shape = arguments[n]->shape();
    if (!hlo::IsHostMemoryKind(memories[n]) || shape.IsTuple() || hlo::OnHost(shape)) continue;
    shape.layout.memory_space = hlo::kHostSpace;
    arguments[n]->set_shape(std::move(shape));
    context.records.Add(reasons::kArgumentOnHost, arguments[n]->name(), {{"memory", memories[n]}});
    changed = true;
  }
  if (context.stated->donate && hlo::DonateArguments(module)) {
    context.records.Add(reasons::kArgumentsDonated, module.entry()->name(),
                        {{"count", static_cast<int64_t>(arguments.size())}});
    changed = true;
  }
  return changed;
}

absl::StatusOr<bool> StateKernelCosts(hlo::Module& module, const PassContext& context) {
  const std::vector<std::string> before = WrittenAttributes(module);
  const kernels::KernelTrips unknown = [](const tpusim::KernelLoop&) { return std::nullopt; };
  const kernels::KernelTrips& trips = context.stated->kernel_trips;
  for (const std::string& call : kernels::SetBodyCosts(module, context.stated->partitions,
                                                       trips ? trips : unknown, context.target)) {
    context.records.Add(reasons::kBodyPriced, call);
  }
  const std::vector<kernels::NamedCost>& costs = context.stated->kernel_costs;
  const std::vector<std::vector<std::string>> users = kernels::SetCustomCosts(module, costs);
  for (size_t n = 0; n < costs.size(); ++n) {
    for (const std::string& call : users[n]) {
      context.records.Add(reasons::kKernelCostStated, call, {{"name", costs[n].name}});
    }
    if (!users[n].empty()) continue;
    WarnOfNoEffect(context.records, "--kernel-cost " + costs[n].name,
                   NamesOf(module, hlo::Opcode::kCustomCall), "no custom call", "custom calls");
  }
  kernels::HoldToStatedTimes(module, context.target);
  return WrittenAttributes(module) != before;
}

absl::StatusOr<bool> StateTripCounts(hlo::Module& module, const PassContext& context) {
  const std::vector<std::string> before = WrittenAttributes(module);
  hlo::SetAssumedTrips(module, [&](const hlo::Instruction& loop) {
    return context.facts->Loops(module).Of(loop).trips().has_value();
  });
  for (const hlo::Computation* computation : module.PostOrder()) {
    for (hlo::Instruction* i : computation->instructions()) {
      // Of Jacobi's method, in calls without a stated cost.
      if (hlo::IsEighCall(*i) && kernels::IsFactorizationCall(*i)) {
        ASSIGN_OR_RETURN(const int64_t sweeps, context.cost.TripsOf(*i));
        hlo::SetSweeps(i, sweeps);
      }
      if (!context.records.wanted()) continue;
      if (const auto trips = hlo::AssumedTripsOf(*i)) {
        context.records.Add(reasons::kTripsWritten, i->name(), {{"sentence", trips->sentence}});
      }
    }
  }
  return WrittenAttributes(module) != before;
}

absl::StatusOr<bool> StateBranches(hlo::Module& module, const PassContext& context) {
  const auto& stated = context.stated->branches;
  std::vector<bool> used(stated.size(), false);
  bool changed = false;
  for (hlo::Computation* computation : module.computations()) {
    for (hlo::Instruction* i : computation->instructions()) {
      if (i->opcode() != hlo::Opcode::kConditional) continue;
      // The first that matches wins.
      bool done = false;
      for (size_t n = 0; n < stated.size(); ++n) {
        const auto& [pattern, choice] = stated[n];
        if (fnmatch(pattern.c_str(), i->name().c_str(), 0) != 0) continue;
        used[n] = true;
        if (std::exchange(done, true)) continue;
        if (!hlo::IsBranchOf(*i, choice)) {
          return UserError(
              fmt::format("--branch {}={}: {} has branches 0 to {}; give one of them or 'longest'",
                          pattern, choice, i->Describe(), i->called().size() - 1));
        }
        context.records.Add(reasons::kBranchStated, i->name(), {{"branch", choice}});
        changed |= hlo::StateBranch(i, choice);
      }
      if (const auto written = hlo::WrittenBranch(*i); written && !hlo::IsBranchOf(*i, *written)) {
        return UserError(
            fmt::format("{} is said to take branch '{}' and has branches 0 to {}; give one of them "
                        "or 'longest' (--branch {}=K)",
                        i->Describe(), *written, i->called().size() - 1, i->name()));
      }
    }
  }
  for (size_t n = 0; n < stated.size(); ++n) {
    if (used[n]) continue;
    WarnOfNoEffect(context.records,
                   fmt::format("--branch {}={}", stated[n].first, stated[n].second),
                   NamesOf(module, hlo::Opcode::kConditional), "no conditional", "conditionals");
  }
  return changed;
}

}  // namespace tpusim::passes
