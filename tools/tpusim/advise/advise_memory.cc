#include "tools/tpusim/advise/advise_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "configs/status_macros.h"
#include "sim/results/report/text.h"
#include "tools/tpusim/advise/advice_variants.h"
#include "tools/tpusim/command_line/producer.h"
#include "tools/tpusim/find/holding_slices.h"
#include "tools/tpusim/find/verdicts.h"
#include "tools/tpusim/output/console.h"
#include "workloads/buffers/fits.h"
#include "workloads/passes/rematerialize/rematerialize.h"
#include "workloads/target/target.h"

namespace tpusim::tools {
namespace {

using MemoryJson = nlohmann::ordered_json;

// In which everything fits: the largest that the parameter takes.
constexpr std::string_view kNoLimit = "chip.hbm.bytes=1e15";

// Returns the line of progress, "peak 9.000 MiB of 16.00 MiB".
std::string NeedsText(const VerdictOr& needs) {
  if (!needs.ok()) return OneLine(Message(needs.status()));
  return fmt::format("peak {} of {}", results::BytesText(needs->peak),
                     results::BytesText(needs->usable));
}

// This chip with so much HBM for programs.
Variant WithHbm(const MemoryQuestion& question, const configs::Config& machine, Bytes usable,
                std::string why) {
  const Bytes bytes = usable + machine.chip.hbm.reserved_bytes;
  const std::string text = fmt::format("chip.hbm.bytes={}", bytes.value());
  Variant v{std::string(kOfTheChip), fmt::format("{} of HBM", results::BytesText(bytes)),
            std::move(why),          {"--set", text},
            question.config,         QuietFlags(question.program)};
  v.program.overrides.push_back(text);
  return v;
}

// A slice of every other chip with more HBM.
absl::StatusOr<std::vector<Variant>> LargerChips(const MemoryQuestion& question,
                                                 const configs::Config& machine,
                                                 int64_t partitions) {
  std::vector<Variant> variants;
  ASSIGN_OR_RETURN(const std::vector<HoldingSlice> slices,
                   HoldingSlices(partitions, {}, /*larger=*/false));
  std::set<std::string> seen = {machine.chip.name};
  for (const HoldingSlice& slice : slices) {
    const std::string chip = slice.config.substr(0, slice.config.find('-'));
    // With the user's settings, which may not suit that chip.
    const auto config = configs::LoadConfig(slice.config, question.program.overrides,
                                            question.program.compiler);
    if (!config.ok() || config->chip.hbm.bytes <= machine.chip.hbm.bytes) continue;
    if (!seen.insert(chip).second) continue;
    variants.push_back(
        {"slice",
         "slice " + slice.config,
         fmt::format("{} of HBM per device", results::BytesText(config->chip.hbm.bytes)),
         {"--config", slice.config},
         slice.config,
         QuietFlags(question.program)});
  }
  return variants;
}

// Returns changes of what is live, and sizes of HBM that would be enough. `whole` is
// the program with everything kept.
absl::StatusOr<std::vector<Variant>> MemoryVariants(const MemoryQuestion& question,
                                                    const configs::Config& machine,
                                                    const Prepared& whole, Bytes needed) {
  std::vector<Variant> variants;
  for (Variant& v : ProgramVariants(whole, question.config, question.program)) {
    if (v.kind == "donation" || v.kind == "compiler") variants.push_back(std::move(v));
  }
  // Two together, where one is not enough.
  const auto donation = std::ranges::find(variants, "donation", &Variant::kind);
  if (donation != variants.end()) {
    const std::vector<Variant> single = variants;
    for (const Variant& v : single) {
      if (v.kind != "compiler") continue;
      Variant both = v;
      both.name += ", and donate";
      both.options.emplace_back("--donate");
      both.program.donate = true;
      variants.push_back(std::move(both));
    }
  }
  const int64_t partitions = whole.compiled.program.info.partitions;
  ASSIGN_OR_RETURN(std::vector<Variant> chips, LargerChips(question, machine, partitions));
  std::ranges::move(chips, std::back_inserter(variants));
  const Bytes kept = whole.compiled.program.info.peak.hbm();
  variants.push_back(WithHbm(question, machine, needed, "as much as is needed"));
  // The compiler leaves a part of HBM free before it computes anything again.
  const int64_t percent = machine.chip.compiler.rematerialized_percent;
  const Bytes ample((kept.value() * 100 + percent - 1) / percent);
  if (ample > needed) {
    variants.push_back(WithHbm(question, machine, ample, "nothing has to be computed again"));
  }
  return variants;
}

using MemoryRow = std::pair<const Variant*, search::Verdict>;

// Puts variants that fit first, by step time, and behind them those that need the least more.
void SortRows(std::vector<MemoryRow>& rows) {
  std::ranges::stable_sort(rows, {}, [](const MemoryRow& row) {
    const auto& [variant, needs] = row;
    return std::tuple(!needs.has_step(), needs.has_step() && variant->kind == kOfTheChip,
                      needs.step, needs.peak - needs.usable);
  });
}

std::string Owners(const isa::ProgramInfo& info) {
  std::map<std::string, Bytes> sums;
  for (const isa::LiveArray& array : info.live_at_peak) sums[array.owner] += array.bytes;
  std::vector<std::pair<std::string, Bytes>> owners(sums.begin(), sums.end());
  std::ranges::stable_sort(owners, std::greater<>(), [](const auto& o) { return o.second; });
  std::string text;
  for (const auto& [owner, bytes] : owners) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", owner, results::BytesText(bytes));
  }
  return text;
}

std::string MemoryText(const MemoryQuestion& question, const Prepared& whole,
                       const search::Verdict& base, const std::vector<MemoryRow>& rows) {
  const isa::ProgramInfo& info = whole.compiled.program.info;
  std::string text = fmt::format(
      "{:<14} {} on {}\n{:<14} peak {} of {} usable HBM, {} too much{}\n{:<14} peak {}: {}\n",
      "workload", whole.name, question.config, "does not fit", results::BytesText(base.peak),
      results::BytesText(base.usable), results::BytesText(base.peak - base.usable),
      info.peak.hbm() > base.peak ? ", with what the compiler computes again" : "", "all kept",
      results::BytesText(info.peak.hbm()), Owners(info));
  std::vector<std::vector<std::string>> cells = {
      {"what would fit", "peak HBM", "usable", "step time", "<why or how"}};
  std::vector<std::vector<std::string>> short_of = {
      {"what would not", "peak HBM", "usable", "too much", "<why or how"}};
  for (const auto& [variant, needs] : rows) {
    auto& table = needs.has_step() ? cells : short_of;
    if (table.size() > question.top) continue;
    table.push_back({variant->name, results::BytesText(needs.peak),
                     results::BytesText(needs.usable),
                     needs.has_step() ? results::TimeText(needs.step)
                                      : results::BytesText(needs.peak - needs.usable),
                     WhyOf(*variant)});
  }
  for (const auto& table : {cells, short_of}) {
    if (table.size() == 1) continue;
    text += "\n" + results::TableText(table, ResultColumns(), results::LastColumn::kBelow);
  }
  return text + fmt::format(
                    "\n{:<14} the program is partitioned for {} devices; exported over a larger "
                    "mesh it needs less of each (tpusim search)\n",
                    "more chips", info.partitions);
}

MemoryJson MemoryToJson(const MemoryQuestion& question, const Prepared& whole,
                        const search::Verdict& base, const Trials& trials) {
  MemoryJson j = results::HeadOf("tpusim.advise-memory/1", ThisProducer());
  j.update(MemoryJson{{"workload", whole.name},
                      {"config", question.config},
                      {"peak_hbm_bytes", base.peak.value()},
                      {"usable_hbm_bytes", base.usable.value()},
                      {"kept_hbm_bytes", whole.compiled.program.info.peak.hbm().value()},
                      {"variants", MemoryJson::array()},
                      {"not_possible", trials.FailedJson()}});
  for (const auto& [variant, needs] : trials.ran) {
    MemoryJson v = {{"kind", variant->kind},
                    {"name", variant->name},
                    {"why", variant->why},
                    {"options", variant->options},
                    {"fits", needs.has_step()},
                    {"peak_hbm_bytes", needs.peak.value()},
                    {"usable_hbm_bytes", needs.usable.value()}};
    if (needs.has_step()) v["step_time_ns"] = ToNanoseconds(needs.step);
    j["variants"].push_back(std::move(v));
  }
  return j;
}

}  // namespace

absl::Status AdviseMemory(const MemoryQuestion& question, const absl::Status& too_much,
                          VariantJudge& judge) {
  ASSIGN_OR_RETURN(const configs::Config machine,
                   configs::LoadConfig(question.config, question.program.overrides,
                                       question.program.compiler));
  search::Verdict base;
  base.kind = search::Verdict::Kind::kTooLarge;
  base.peak = *buffers::NeededHbm(too_much);
  base.usable = target::Target(machine).Usable(hlo::kHbmSpace);
  ProgramFlags unlimited = QuietFlags(question.program);
  unlimited.overrides.emplace_back(kNoLimit);
  ASSIGN_OR_RETURN(const Prepared whole,
                   judge.Compiled(question.config, unlimited, question.machine));
  ASSIGN_OR_RETURN(const std::vector<Variant> variants,
                   MemoryVariants(question, machine, whole, base.peak));
  const auto needs_of = [&](size_t i) {
    return judge.Of(variants[i].config, variants[i].program, &question.machine);
  };
  ASSIGN_OR_RETURN(Trials trials, TrialsOf(variants, VerdictsOn(QuestionsOf(variants), needs_of,
                                                                NeedsText, question.program)));
  SortRows(trials.ran);
  return PrintResult(question.json
                         ? results::JsonText(MemoryToJson(question, whole, base, trials))
                         : MemoryText(question, whole, base, trials.ran) + trials.FailedText());
}

}  // namespace tpusim::tools
