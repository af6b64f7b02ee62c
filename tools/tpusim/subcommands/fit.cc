// tpusim fit: on which chips and slices a program fits in memory.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "configs/config.h"
#include "configs/names.h"
#include "configs/status_macros.h"
#include "sim/results/report/text.h"
#include "tools/tpusim/command_line/command.h"
#include "tools/tpusim/command_line/help.h"
#include "tools/tpusim/command_line/producer.h"
#include "tools/tpusim/find/holding_slices.h"
#include "tools/tpusim/find/variant_judge.h"
#include "tools/tpusim/find/verdicts.h"
#include "tools/tpusim/output/console.h"

namespace tpusim::tools {
namespace {

using Json = nlohmann::ordered_json;

struct FitFlags {
  std::string workload;
  std::vector<std::string> chips;
  bool larger = false, json = false;
  ProgramFlags program;
};

absl::Status CheckKnownChips(const std::vector<std::string>& chips) {
  const std::vector<std::string> known = configs::ChipNames();
  for (const std::string& chip : chips) {
    if (std::ranges::find(known, chip) != known.end()) continue;
    return UserError(
        fmt::format("--chip {}: unknown; the nearest is {}", chip, configs::Nearest(chip, known)));
  }
  return absl::OkStatus();
}

bool Fits(const search::Verdict& verdict) {
  return verdict.kind == search::Verdict::Kind::kFits;
}

// Returns the line of progress, "fits, peak 3.200 GiB of 15.75 GiB".
std::string FitText(const VerdictOr& verdict) {
  if (!verdict.ok()) return "no: " + OneLine(Message(verdict.status()));
  return fmt::format("{}, peak {} of {}", Fits(*verdict) ? "fits" : "no",
                     results::BytesText(verdict->peak), results::BytesText(verdict->usable));
}

absl::Status Fit(const FitFlags& flags) {
  RETURN_IF_ERROR(CheckKnownChips(flags.chips));
  ASSIGN_OR_RETURN(const std::unique_ptr<VariantJudge> judge,
                   VariantJudge::Of(flags.workload, flags.program));
  const int64_t partitions = judge->partitions();
  ASSIGN_OR_RETURN(const std::vector<HoldingSlice> candidates,
                   HoldingSlices(partitions, flags.chips, flags.larger));
  if (candidates.empty()) {
    return UserError(fmt::format("{} has {} partitions, more than any slice has devices",
                                 flags.workload, partitions));
  }
  std::vector<Question> questions;
  for (const HoldingSlice& c : candidates) questions.push_back({.name = c.config, .kin = c.chip});
  const auto peak_on = [&](size_t i) {
    return judge->Of(candidates[i].config, flags.program, /*machine=*/nullptr);
  };
  const std::vector<VerdictOr> peaks =
      VerdictsOn(questions, peak_on, FitText, flags.program);
  std::vector<std::vector<std::string>> table = {
      {"slice", "devices", "peak", "usable", "share", "<fits"}};
  Json rows = Json::array();
  for (size_t i = 0; i < candidates.size(); ++i) {
    const HoldingSlice& c = candidates[i];
    Json row = {{"config", c.config}, {"devices", c.devices}};
    if (!peaks[i].ok()) {
      // A bug of ours says nothing about the slice.
      if (absl::IsInternal(peaks[i].status())) return peaks[i].status();
      const std::string reason = OneLine(Message(peaks[i].status()));
      row["fits"] = false;
      row["reason"] = reason;
      table.push_back({c.config, fmt::format("{}", c.devices), "", "", "", "no: " + reason});
    } else {
      const Bytes needed = peaks[i]->peak, usable = peaks[i]->usable;
      const bool fits = Fits(*peaks[i]);
      row["fits"] = fits;
      if (!fits) row["reason"] = OneLine(peaks[i]->why);
      row["peak_hbm_bytes"] = needed.value();
      row["usable_hbm_bytes"] = usable.value();
      table.push_back({c.config, fmt::format("{}", c.devices), results::BytesText(needed),
                       results::BytesText(usable), results::PercentText(Ratio(needed, usable)),
                       fits ? "yes" : "no: " + results::BytesText(needed - usable) + " too much"});
    }
    rows.push_back(std::move(row));
  }
  if (flags.json) {
    Json j = results::HeadOf("tpusim.fit/1", ThisProducer());
    j["partitions"] = partitions;
    j["slices"] = std::move(rows);
    return PrintResult(results::JsonText(j));
  }
  // Reasons name the largest arrays: they are not cut.
  return PrintResult(results::TableText(table, ResultColumns(), results::LastColumn::kBelow));
}

}  // namespace

Command AddFit(CLI::App& parent) {
  auto flags = std::make_shared<FitFlags>();
  CLI::App* app = parent.add_subcommand(
      "fit", "Find the slices on which a program fits in memory, by compiling it");
  app->add_option("workload", flags->workload, "A file of tpusim.export")
      ->type_name("WORKLOAD.pb")
      ->required();
  app->add_option("--chip", flags->chips, "Only slices of this chip; may be repeated")
      ->type_name("CHIP")
      ->allow_extra_args(false);
  app->callback([flags] {
    if (flags->workload != "-") return;
    throw CLI::ValidationError("fit", "the program is read from a file, not from stdin");
  });
  app->add_flag("--larger", flags->larger,
                "All slices with enough devices (default: the smallest of each chip)");
  app->add_flag("--json", flags->json, "Print JSON");
  AddProgramFlags(*app, flags->program);
  AddExamples(*app, {{"tpusim fit step.pb", "on every chip"},
                     {"tpusim fit step.pb --chip v5e --larger", "on all slices of one chip"}});
  return {app, [flags] { return Fit(*flags); }};
}

}  // namespace tpusim::tools
