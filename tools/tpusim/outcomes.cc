#include "tools/tpusim/outcomes.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "configs/status_macros.h"
#include "tools/tpusim/children.h"
#include "tools/tpusim/progress.h"
#include "workloads/buffers/fits.h"
#include "workloads/target/target.h"

namespace tpusim::tools {
namespace {

using OutcomeJson = nlohmann::json;

std::string ToText(const Outcome& outcome) {
  OutcomeJson j = {{"peak", outcome.peak.value()},
                   {"usable", outcome.usable.value()},
                   {"too_much", outcome.too_much}};
  if (outcome.step) j["step"] = outcome.step->value();
  return j.dump(-1, ' ', false, OutcomeJson::error_handler_t::replace);
}

absl::StatusOr<Outcome> FromText(const absl::StatusOr<std::string>& text) {
  RETURN_IF_ERROR(text.status());
  const OutcomeJson j = OutcomeJson::parse(*text);
  Outcome outcome{Bytes(j.at("peak").get<int64_t>()), Bytes(j.at("usable").get<int64_t>()),
                  j.at("too_much").get<std::string>()};
  if (j.contains("step")) outcome.step = Picoseconds(j["step"].get<int64_t>());
  return outcome;
}

}  // namespace

Outcome OutcomeOf(const results::Report& report) {
  return {.peak = report.peak.hbm(), .usable = report.usable.hbm(), .step = report.step_time};
}

absl::StatusOr<Outcome> OutcomeOf(const std::string& workload, const std::string& config,
                                  const ProgramFlags& program, const MachineFlags* machine) {
  const absl::StatusOr<Prepared> prepared =
      Prepare(workload, config, program, CompileOptionsOf(program));
  if (const std::optional<Bytes> needed = buffers::NeededHbm(prepared.status())) {
    ASSIGN_OR_RETURN(const configs::Config loaded, configs::LoadConfig(config, program.overrides));
    return Outcome{*needed, target::Target(loaded).Usable(hlo::kHbmSpace),
                   Message(prepared.status())};
  }
  RETURN_IF_ERROR(prepared.status());
  if (machine == nullptr) {
    const isa::ProgramInfo& info = prepared->compiled.program.info;
    return Outcome{info.peak.hbm(), info.usable.hbm()};
  }
  ASSIGN_OR_RETURN(const Simulated simulated, Simulate(*prepared, *machine));
  return OutcomeOf(simulated.report);
}

std::vector<absl::StatusOr<Outcome>> OutcomesOf(
    const std::vector<std::string>& names,
    const std::function<absl::StatusOr<Outcome>(size_t)>& make,
    const std::function<std::string(const absl::StatusOr<Outcome>&)>& text,
    const ProgramFlags& flags) {
  std::vector<Task> tasks;
  for (size_t i = 0; i < names.size(); ++i) {
    tasks.push_back([&make, i]() -> absl::StatusOr<std::string> {
      ASSIGN_OR_RETURN(const Outcome outcome, make(i));
      return ToText(outcome);
    });
  }
  Rows progress(tasks.size(), flags.quiet, flags.verbose);
  std::vector<absl::StatusOr<Outcome>> outcomes;
  for (const auto& answer : InChildren(tasks, Processors(), [&](const TaskEnd& end) {
         progress.Add(fmt::format("{}: {}", names[end.task], text(FromText(end.answer))));
       })) {
    outcomes.push_back(FromText(answer));
  }
  return outcomes;
}

}  // namespace tpusim::tools
