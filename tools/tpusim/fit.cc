// tpusim fit: on which chips and slices a program fits in memory.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "configs/config.h"
#include "configs/names.h"
#include "configs/status_macros.h"
#include "sim/results/text.h"
#include "tools/tpusim/children.h"
#include "tools/tpusim/command.h"
#include "tools/tpusim/console.h"
#include "tools/tpusim/help.h"
#include "tools/tpusim/holding_slices.h"
#include "tools/tpusim/pipeline.h"
#include "tools/tpusim/producer.h"
#include "tools/tpusim/progress.h"
#include "workloads/buffers/fits.h"
#include "workloads/target/target.h"

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

// {"peak": bytes, "usable": bytes}, with {"reason": text} if that is too much.
absl::StatusOr<std::string> PeakOn(const FitFlags& flags, const std::string& config) {
  const absl::StatusOr<Prepared> prepared =
      Prepare(flags.workload, config, flags.program, CompileOptionsOf(flags.program));
  if (const std::optional<Bytes> needed = buffers::NeededHbm(prepared.status())) {
    ASSIGN_OR_RETURN(const configs::Config loaded,
                     configs::LoadConfig(config, flags.program.overrides));
    const target::Target target(loaded);
    return Json({{"peak", needed->value()},
                 {"usable", target.Usable(hlo::kHbmSpace).value()},
                 {"reason", Message(prepared.status())}})
        .dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  RETURN_IF_ERROR(prepared.status());
  const isa::ProgramInfo& info = prepared->compiled.program.info;
  return Json({{"peak", info.peak.hbm().value()}, {"usable", info.usable.hbm().value()}}).dump();
}

// As it comes: "v5e-4x4: fits, peak 3.200 GiB of 15.75 GiB".
std::string FitRowText(const std::string& config, const absl::StatusOr<std::string>& answer) {
  if (!answer.ok()) return fmt::format("{}: no: {}", config, OneLine(Message(answer.status())));
  const Json peak = Json::parse(*answer);
  return fmt::format("{}: {}, peak {} of {}", config, peak.contains("reason") ? "no" : "fits",
                     results::BytesText(Bytes(peak.at("peak").get<int64_t>())),
                     results::BytesText(Bytes(peak.at("usable").get<int64_t>())));
}

absl::Status Fit(const FitFlags& flags) {
  RETURN_IF_ERROR(CheckKnownChips(flags.chips));
  ASSIGN_OR_RETURN(const int64_t partitions, PartitionsOf(flags.workload));
  ASSIGN_OR_RETURN(const std::vector<HoldingSlice> candidates,
                   HoldingSlices(partitions, flags.chips, flags.larger));
  if (candidates.empty()) {
    return UserError(fmt::format("{} has {} partitions, more than any slice has devices",
                                 flags.workload, partitions));
  }
  std::vector<Task> tasks;
  for (const HoldingSlice& c : candidates) {
    tasks.push_back([&flags, config = c.config] { return PeakOn(flags, config); });
  }
  Rows progress(tasks.size(), flags.program.quiet, flags.program.verbose);
  const std::vector<absl::StatusOr<std::string>> peaks =
      InChildren(tasks, Processors(), [&](const TaskEnd& end) {
        progress.Add(FitRowText(candidates[end.task].config, end.answer));
      });
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
      const Json peak = Json::parse(*peaks[i]);
      const bool fits = !peak.contains("reason");
      row["fits"] = fits;
      if (!fits) row["reason"] = OneLine(peak.at("reason").get<std::string>());
      const Bytes needed(peak.at("peak").get<int64_t>());
      const Bytes usable(peak.at("usable").get<int64_t>());
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
  std::string text;
  // Reasons name the largest arrays: they are not cut.
  text += results::TableText(table, ResultColumns(), results::LastColumn::kBelow);
  return PrintResult(text);
}

}  // namespace

Command AddFit(CLI::App& parent) {
  auto flags = std::make_shared<FitFlags>();
  CLI::App* app = parent.add_subcommand(
      "fit", "On which slices a program fits in memory: compiles, does not simulate");
  app->add_option("workload", flags->workload, "What tpusim.export wrote")
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
                "All slices with devices enough (default: of each chip the smallest of them)");
  app->add_flag("--json", flags->json, "Print JSON");
  AddProgramFlags(*app, flags->program);
  AddExamples(*app, {{"tpusim fit step.pb", "on every chip"},
                     {"tpusim fit step.pb --chip v5e --larger", "on all slices of one chip"}});
  return {app, [flags] { return Fit(*flags); }};
}

}  // namespace tpusim::tools
