#include "workloads/passes/pipeline/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <optional>
#include <utility>

#include "configs/status_macros.h"
#include "workloads/hlo/analysis/compiled.h"
#include "workloads/hlo/analysis/verify.h"
#include "workloads/passes/pipeline/limits.h"

namespace tpusim::passes {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

int64_t InstructionsOf(const hlo::Module& module) {
  int64_t count = 0;
  for (const hlo::Computation* c : module.computations()) count += static_cast<int64_t>(c->size());
  return count;
}

// The order of a module's computations while a pass runs that would not keep it up to date.
// Such a pass sees a module without an order, whether an earlier pass or the file gave it one:
// what it adds has no place there. The order comes back if the pass has changed nothing.
class SuspendedOrder {
 public:
  explicit SuspendedOrder(hlo::Module& module) {
    for (hlo::Computation* c : module.computations()) {
      if (c->schedule().empty()) continue;
      orders_.emplace_back(c, c->schedule());
      c->set_schedule({});
    }
  }
  bool empty() const { return orders_.empty(); }
  void Restore() {
    for (auto& [computation, order] : orders_) computation->set_schedule(std::move(order));
  }

 private:
  std::vector<std::pair<hlo::Computation*, std::vector<hlo::Instruction*>>> orders_;
};

class Runner {
 public:
  Runner(hlo::Module& module, const PassContext& context, const PipelineOptions& options,
         std::vector<PassRun>& runs)
      : module_(module), context_(context), options_(options), runs_(runs) {}

  absl::StatusOr<bool> Run(const Pipeline& steps) {
    bool changed = false;
    for (const PipelineStep& step : steps) {
      ASSIGN_OR_RETURN(const bool by_step, step.pass != nullptr ? RunPass(step) : RunGroup(step));
      changed = changed || by_step;
    }
    return changed;
  }

 private:
  // Builds without NDEBUG, which are for tests, look at all of the module.
  absl::Status Verified() const {
    RETURN_IF_ERROR(hlo::VerifyChanges(module_));
#ifdef NDEBUG
    if (!compiled_) return absl::OkStatus();
#endif
    return hlo::Verify(module_);
  }

  absl::StatusOr<bool> RunGroup(const PipelineStep& step) {
    bool changed = false;
    for (int64_t round = 0;; ++round) {
      if (round == limits::kGroupRounds.most()) {
        limits::kGroupRounds.Reached();
        break;
      }
      ASSIGN_OR_RETURN(const bool by_round, Run(step.group));
      if (!by_round) break;
      changed = true;
    }
    return changed;
  }

  absl::StatusOr<bool> RunPass(const PipelineStep& step) {
    if (options_.watch != nullptr) RETURN_IF_ERROR(options_.watch->Begin(step, module_));
    PassRun run;
    run.pass = step.pass->name;
    run.before = InstructionsOf(module_);
    const Clock::time_point start = Clock::now();
    PassContext context = context_;
    const bool explained = std::ranges::find(options_.explain, run.pass) != options_.explain.end();
    std::vector<Record> notes;
    context.records = Records(explained ? &run.records : nullptr, &notes);
    const LimitScope limit_scope;
    std::optional<SuspendedOrder> order;
    if (step.pass->phase == Phase::kOptimize) order.emplace(module_);
    ASSIGN_OR_RETURN(run.changed, step.pass->run(module_, context, step.options));
    if (order && !run.changed) order->Restore();
    if (run.changed && !step.pass->keeps_facts) context.facts->Forget();
    run.dropped_order = order && run.changed && !order->empty();
    module_.Cleanup();
    limit_scope.AddTo(context.records);
    std::ranges::move(notes, std::back_inserter(run.records));
    for (Record& record : run.records) record.pass = step.pass->name;
    run.seconds = SecondsSince(start);
    run.after = InstructionsOf(module_);
    // What no pass changed is as it was when it was verified last.
    if (options_.verify && run.changed) {
      const Clock::time_point verifying = Clock::now();
      const absl::Status status = Verified();
      // What these make is what the module says that it is, and this may be no such thing.
      if (!status.ok() && step.pass->phase == Phase::kRead) {
        return UserError(fmt::format("the module is none that the TPU compiler writes: pass {}: {}",
                                     run.pass, Message(status)));
      }
      if (!status.ok()) {
        return absl::InternalError(
            fmt::format("the module is wrong after pass {}: {}", run.pass, Message(status)));
      }
      run.verify_seconds = SecondsSince(verifying);
    }
    if (options_.watch != nullptr) options_.watch->End();
    if (options_.after_pass) options_.after_pass(run, module_);
    // Of a program of which nothing is stated there is nothing to tell.
    if (step.pass->phase == Phase::kAnnotate && !run.changed && run.records.empty()) return false;
    runs_.push_back(std::move(run));
    return runs_.back().changed;
  }

  hlo::Module& module_;
  const PassContext& context_;
  const PipelineOptions& options_;
  std::vector<PassRun>& runs_;
  const bool compiled_ = hlo::IsCompiled(module_);
};

}  // namespace

absl::StatusOr<bool> RunPipeline(const Pipeline& pipeline, hlo::Module& module,
                                 const PassContext& context, const PipelineOptions& options,
                                 std::vector<PassRun>& runs) {
  return Runner(module, context, options, runs).Run(pipeline);
}

std::string ToString(const PipelineStep& step) {
  std::string text;
  if (step.pass == nullptr) {
    for (const PipelineStep& inner : step.group) {
      text += (text.empty() ? "" : ",") + ToString(inner);
    }
    return fmt::format("fixpoint({})", text);
  }
  for (const PassOption& option : step.pass->options) {
    const auto value = step.options.find(option.name);
    if (value == step.options.end() || value->second == option.fallback) continue;
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", option.name, value->second);
  }
  return std::string(step.pass->name) + (text.empty() ? "" : fmt::format("{{{}}}", text));
}

std::string DecisionsOf(const PassRun& run) {
  return run.records.empty() ? "none\n" : Lines(run.records);
}

std::string ToString(const std::vector<PassRun>& runs) {
  struct PassTotals {
    PassRun sum;
    int64_t runs = 0, changes = 0;
  };
  std::vector<PassTotals> rows;
  PassTotals all;
  for (const PassRun& run : runs) {
    auto row = std::find_if(rows.begin(), rows.end(),
                            [&](const PassTotals& r) { return r.sum.pass == run.pass; });
    if (row == rows.end()) {
      rows.emplace_back();
      row = rows.end() - 1;
      row->sum.pass = run.pass;
    }
    for (PassTotals* to : {&*row, &all}) {
      to->sum.seconds += run.seconds;
      to->sum.verify_seconds += run.verify_seconds;
      to->sum.after += run.after - run.before;
      ++to->runs;
      to->changes += run.changed ? 1 : 0;
    }
  }
  all.sum.pass = "all";
  rows.push_back(all);
  std::string text = fmt::format("{:<20}{:>6}{:>9}{:>14}{:>11}{:>11}\n", "pass", "runs", "changed",
                                 "instructions", "ms", "verify ms");
  for (const PassTotals& row : rows) {
    text += fmt::format("{:<20}{:>6}{:>9}{:>+14}{:>11.2f}{:>11.2f}\n", row.sum.pass, row.runs,
                        // number: a prefix of a unit
                        row.changes, row.sum.after, row.sum.seconds * 1e3,
                        row.sum.verify_seconds * 1e3);  // number: a prefix of a unit
  }
  return text;
}

std::vector<Record> LimitsReached(const std::vector<PassRun>& runs) {
  std::vector<Record> all;
  for (const PassRun& run : runs) {
    std::vector<Record> of_pass;
    const auto is_of_pass = [&](const Record& record) { return record.pass == run.pass; };
    std::ranges::copy_if(all, std::back_inserter(of_pass), is_of_pass);
    std::erase_if(all, is_of_pass);
    const Records sums(nullptr, &of_pass);
    for (const Record& record : run.records) {
      if (record.reason != &kLimitReached) continue;
      const auto number = [&](std::string_view name) {
        return std::get<int64_t>(record.Find(name)->value);
      };
      sums.Limit(record.subject, number("limit"), std::get<std::string>(record.Find("what")->value),
                 number("count"));
      for (Record& sum : of_pass) sum.pass = record.pass;
    }
    std::ranges::move(of_pass, std::back_inserter(all));
  }
  return all;
}

}  // namespace tpusim::passes
