// tpusim configs: which chips and slices there are, and what a chip is made of.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "configs/chip_file.h"
#include "configs/config.h"
#include "configs/names.h"
#include "configs/printable.h"
#include "configs/slices.h"
#include "configs/status_macros.h"
#include "sim/results/report/text.h"
#include "tools/tpusim/command_line/command.h"
#include "tools/tpusim/command_line/help.h"
#include "tools/tpusim/command_line/producer.h"
#include "tools/tpusim/output/console.h"
#include "workloads/collectives/choice_table.h"

namespace tpusim::tools {
namespace {

// 120 where stdout has no edge.
size_t Columns() { return ResultColumns(120); }

struct ConfigsFlags {
  std::string name;
  bool verbose = false, json = false, compiler = false;
};

// Words in lines that fit, all but the first behind an indent.
std::string Sentence(std::string_view words, size_t indent = 0) {
  return results::WrappedText(words, indent, Columns());
}

std::string Paragraph(const std::string& first, size_t indent,
                      const std::vector<std::string>& words) {
  return Sentence(first + configs::Join(words, " "), indent);
}

// "16x16*": every axis is a ring; "8x16+": some are.
std::vector<std::string> MarkedSlices(const configs::ChipParams& chip) {
  std::vector<std::string> marked;
  for (const std::string& slice : chip.slices.slices) {
    std::array<int64_t, configs::kMaxAxes> shape;
    TPUSIM_CHECK(configs::ParseShape(slice, &shape), "the loader checked the slices");
    const auto wraps = configs::WrapsOf(chip.slices, shape);
    int long_axes = 0, rings = 0;
    for (int axis = 0; axis < configs::kMaxAxes; ++axis) {
      if (shape[axis] == 1) continue;
      ++long_axes;
      if (wraps[axis]) ++rings;
    }
    marked.push_back(slice + (rings == 0 ? "" : rings == long_axes ? "*" : "+"));
  }
  return marked;
}

absl::StatusOr<std::string> List() {
  std::string text =
      Sentence("chip   slices (--config CHIP-SLICE; * all axes are rings, + some are)");
  for (const std::string& name : configs::ChipNames()) {
    ASSIGN_OR_RETURN(const configs::ChipFile file, configs::LoadChip(name, ""));
    text += Paragraph(fmt::format("{:<6} ", name), 7, MarkedSlices(file.chip));
  }
  return text + "\n" +
         Sentence(
             "A twisted torus is CHIP-SLICE_twisted: v4 and v5p, n x n x 2n and n x 2n x 2n.") +
         Sentence(
             "`tpusim configs CHIP` shows a chip: what it is made of, and where each figure is "
             "from.");
}

// "v5e", of "v5e-4x2" as well.
std::string ChipOf(const std::string& name) {
  const std::vector<std::string> chips = configs::ChipNames();
  const std::string chip = name.substr(0, name.find('-'));
  const bool slice_given = std::find(chips.begin(), chips.end(), chip) != chips.end();
  return slice_given ? chip : name;
}

// In the order of configs::WrapRule.
constexpr std::string_view kWrapTexts[] = {"no axis wraps", "both axes wrap, of the full pod only",
                                           "an axis wraps if it is 16 long",
                                           "all axes wrap if every one is a multiple of 4"};

// Figures that follow from the parameters.
std::string Portrait(const configs::ChipParams& chip) {
  const double peak = chip.MxuPeak().value() * static_cast<double>(chip.devices) / 1e12;
  const configs::MxuParams& mxu = chip.mxu;
  const std::string devices =
      chip.devices > 1 ? fmt::format("{} devices of one TensorCore", chip.devices)
      : chip.tensor_cores > 1
          ? fmt::format("one device, a megacore of {} TensorCores", chip.tensor_cores)
          : "one device, one TensorCore";
  std::string text = configs::Printable(fmt::format("{}: {}", chip.name, chip.description)) + "\n";
  text +=
      fmt::format("  a chip   {}; {} arrays of {}x{}, {:g} GHz{}\n", devices,
                  mxu.count * chip.tensor_cores, mxu.rows, mxu.columns, chip.clock.value() / 1e9,
                  chip.fastest_clock > chip.clock
                      ? fmt::format(" ({:g} in the fastest state)", chip.fastest_clock.value() / 1e9)
                      : "");
  text += fmt::format(
      "  peak     the arrays make {:.4g} TFLOP/s in bf16, {:.4g} int8, {:.4g} int4, {:.4g} fp8, "
      "{:.4g} f32\n",
      peak, peak / mxu.passes_int8, peak / mxu.passes_int4, peak / mxu.passes_fp8,
      peak / mxu.passes_f32_highest);
  text += fmt::format(
      "  HBM      {:.6g} GiB per device, {:.6g} usable, {:.4g} GB/s; {:.3g} bf16 FLOP per byte\n",
      static_cast<double>(chip.hbm.bytes.value()) / kGiB,
      static_cast<double>((chip.hbm.bytes - chip.hbm.reserved_bytes).value()) / kGiB,
      chip.hbm.bytes_per_second.value() / 1e9,
      chip.MxuPeak().value() / chip.hbm.bytes_per_second.value());
  const std::string links =
      chip.slices.Links() == 0
          ? "slices are single chips"
          : fmt::format("{} links of {:g} GB/s each way; {}", chip.slices.Links(),
                        chip.ici.link_bytes_per_second.value() / 1e9,
                        kWrapTexts[static_cast<size_t>(chip.slices.wrap)]);
  text += fmt::format("  network  {}{}; {}x{}x{} chips a host\n", links,
                      chip.slices.twisted ? "; twisted tori" : "", chip.host.chips_x,
                      chip.host.chips_y, chip.host.chips_z);
  std::vector<std::string> slices = MarkedSlices(chip);
  if (slices.size() > 14) {
    const std::string last = slices.back(), all = fmt::format("{} of them:", slices.size());
    slices.resize(8);
    slices.insert(slices.begin(), all);
    slices.insert(slices.end(), {"...", last});
  }
  return text + Paragraph("  slices   ", 11, slices);
}

// "819 GB/s" for 8.19e11 bytes_per_second; "" where the plain number says it.
std::string Readable(const configs::ParameterInfo& parameter) {
  const double value = std::strtod(parameter.value.c_str(), nullptr);
  if (parameter.unit == "hertz") return fmt::format("{:g} GHz", value / 1e9);
  if (parameter.unit == "bytes_per_second") return fmt::format("{:g} GB/s", value / 1e9);
  if (parameter.unit == "flops_per_second") return fmt::format("{:g} TFLOP/s", value / 1e12);
  if (parameter.unit != "bytes") return "";
  for (const auto& [size, name] : {std::pair(kGiB, "GiB"), {kMiB, "MiB"}, {kKiB, "KiB"}}) {
    if (value >= static_cast<double>(size)) {
      return fmt::format("{:g} {}", value / static_cast<double>(size), name);
    }
  }
  return "";
}

// Parameters that share a row of the short form: what their names begin with,
// "host.chips_", and which row it is; empty for one with a row of its own.
std::pair<std::string, int> RowOf(const std::string& path) {
  if (path == "chip.mxu.rows" || path == "chip.mxu.columns") return {"chip.mxu.", 3};
  for (const std::string_view prefix :
       {"chip.mxu.passes_", "chip.sparse_core.offload_", "chip.sparse_core.", "host.chips_"}) {
    if (!path.starts_with(prefix)) continue;
    const bool wide = path.find("f32") != std::string::npos || path.ends_with("bf16");
    return {std::string(prefix), wide ? 1 : 2};
  }
  return {};
}

// No file gives the parameter: there is nothing to tell but its default.
bool IsDefault(const configs::ParameterInfo& parameter) {
  return parameter.source.starts_with("default:");
}

std::string Short(const std::vector<configs::ParameterInfo>& parameters) {
  std::vector<std::vector<std::string>> rows = {{"parameter", "value", "<unit", "<source"}};
  std::pair<std::string, int> shared;  // the row that the last parameter went to
  for (const configs::ParameterInfo& p : parameters) {
    if (IsDefault(p)) continue;
    const std::pair<std::string, int> row = RowOf(p.path);
    std::string name = p.path.substr(row.first.size());
    if (row.first.ends_with("offload_")) name.erase(name.rfind("_bytes"));  // the row is long
    if (!row.first.empty() && row == shared) {
      rows.back()[1] += " " + p.value;
      rows.back()[2] += " " + name;
      continue;
    }
    shared = row;
    if (!row.first.empty()) {
      rows.push_back({row.first + "*", p.value, name, p.source});
      continue;
    }
    const std::string readable = Readable(p);
    rows.push_back(
        {p.path, p.value, readable.empty() ? p.unit : p.unit + " = " + readable, p.source});
  }
  return results::TableText(rows, Columns());
}

std::string Long(const std::vector<configs::ParameterInfo>& parameters) {
  std::string text;
  for (const configs::ParameterInfo& p : parameters) {
    text += fmt::format("{} = {} {}\n    source: {}\n", p.path, p.value, p.unit,
                        configs::Printable(p.source));
    if (!p.note.empty()) text += fmt::format("    note:   {}\n", configs::Printable(p.note));
  }
  return text;
}

// A row of the choices of collective algorithms, as far as it is about a chip.
struct ChoiceOfChip {
  std::string when, choice;
  std::string source;
  collectives::Evidence evidence;
};

std::vector<ChoiceOfChip> ChoicesOf(const std::string& like) {
  const collectives::ChoiceTable& table = collectives::CompilerChoices();
  std::vector<ChoiceOfChip> choices;
  if (like.empty()) return choices;
  const auto add = [&](const collectives::Condition& when, const std::string& choice,
                       const collectives::Evidence& evidence) {
    if (!when.IsAbout(like)) return;
    int seen = 0;
    for (const auto& [chip, count] : evidence.collectives) seen += count;
    const auto of_chip = evidence.collectives.find(like);
    const std::string counted =
        fmt::format("{} collectives that were compiled, {} of them for {}", seen,
                    of_chip != evidence.collectives.end() ? of_chip->second : 0, like);
    choices.push_back({collectives::TextOf(when), choice,
                       evidence.source.empty() ? counted : evidence.source, evidence});
  };
  for (const auto& row : table.rings) add(row.when, "one ring through the group", row.evidence);
  for (const auto& row : table.offloads) add(row.when, "off-loaded", row.evidence);
  for (const auto& row : table.rows) add(row.when, collectives::TextOf(row), row.evidence);
  return choices;
}

// "libtpu-0.0.42 on v2, as on v5e: ...", and every value with all that is known of it.
absl::StatusOr<std::string> OfCompiler(const std::string& chip, bool verbose) {
  ASSIGN_OR_RETURN(const configs::ChipFile file, configs::LoadChip(chip, ""));
  ASSIGN_OR_RETURN(const std::vector<configs::ParameterInfo> values,
                   configs::DescribeCompiler(chip));
  const configs::ChipParams& params = file.chip;
  const std::string& like = params.compiler.like;
  std::string text = Sentence(configs::Printable(fmt::format(
      "What the TPU compiler ({}) does on {} where costs do not decide{}; --set and --xla-flags "
      "override it.",
      configs::CompilerName(), params.name,
      like == params.name ? ""
      : like.empty()      ? ": no compiled program is known"
                          : fmt::format(", as on {} ({})", like, file.like_source))));
  constexpr size_t kIndent = 13;
  const auto line = [&text](std::string_view what, const std::string& value) {
    if (value.empty()) return;
    text += Sentence(fmt::format("    {:<9}{}", what, configs::Printable(value)), kIndent);
  };
  for (const configs::ParameterInfo& p : values) {
    const bool flag = p.unit == configs::kFlagUnit;
    text += fmt::format("\n{} = {}{}{}\n", p.path, p.value, flag ? "" : " ", flag ? "" : p.unit);
    line("source:", p.source);
    line("bracket:", p.bracket.empty() ? "none: it is stated" : p.bracket);
    line("flag:", p.flag.empty() ? "none" : "--" + p.flag);
    if (verbose) line("note:", p.note);
  }
  text += "\n" + Sentence(
                     "Collectives, decided by the first line that holds "
                     "(validation/collectives/choices.jsonl):");
  for (const ChoiceOfChip& choice : ChoicesOf(like)) {
    text += "\n" + Sentence(fmt::format("{}: {}", choice.when, choice.choice));
    line("source:", choice.source);
    line("bracket:", choice.evidence.bracket);
    line("flag:", choice.evidence.flag.empty() ? "" : "--" + choice.evidence.flag);
  }
  return text;
}

absl::StatusOr<std::string> AsJson(const std::string& name, bool compiler) {
  using Json = nlohmann::ordered_json;
  Json json = results::HeadOf("tpusim.configs/1", ThisProducer());
  Json chips = Json::array();
  for (const std::string& chip : name.empty() ? configs::ChipNames() : std::vector{name}) {
    ASSIGN_OR_RETURN(const configs::ChipFile file, configs::LoadChip(chip, ""));
    Json one = {{"name", file.chip.name},
                {"description", file.chip.description},
                {"slices", file.chip.slices.slices}};
    if (!name.empty()) {
      ASSIGN_OR_RETURN(const std::vector<configs::ParameterInfo> parameters,
                       compiler ? configs::DescribeCompiler(chip) : configs::DescribeChip(chip));
      if (compiler) one["compiler"] = configs::CompilerName();
      for (const configs::ParameterInfo& p : parameters) {
        Json& row = one["parameters"].emplace_back(Json{{"name", p.path},
                                                        {"value", p.value},
                                                        {"unit", p.unit},
                                                        {"source", p.source},
                                                        {"note", p.note}});
        if (compiler) row.update({{"bracket", p.bracket}, {"flag", p.flag}});
      }
      if (compiler) one["collectives"] = Json::array();
      for (const ChoiceOfChip& choice :
           compiler ? ChoicesOf(file.chip.compiler.like) : std::vector<ChoiceOfChip>()) {
        one["collectives"].push_back({{"when", choice.when},
                                      {"choice", choice.choice},
                                      {"source", choice.source},
                                      {"bracket", choice.evidence.bracket},
                                      {"flag", choice.evidence.flag}});
      }
    }
    chips.push_back(std::move(one));
  }
  json["chips"] = std::move(chips);
  return results::JsonText(json);
}

absl::Status Configs(const ConfigsFlags& flags) {
  if (flags.json) {
    ASSIGN_OR_RETURN(const std::string json,
                     AsJson(flags.name.empty() ? "" : ChipOf(flags.name), flags.compiler));
    return PrintResult(json);
  }
  if (flags.name.empty()) {
    ASSIGN_OR_RETURN(const std::string list, List());
    return PrintResult(list);
  }
  const std::string chip = ChipOf(flags.name);
  if (flags.compiler) {
    ASSIGN_OR_RETURN(const std::string values, OfCompiler(chip, flags.verbose));
    return PrintResult(values);
  }
  ASSIGN_OR_RETURN(const std::vector<configs::ParameterInfo> parameters,
                   configs::DescribeChip(chip));
  ASSIGN_OR_RETURN(const configs::ChipFile file, configs::LoadChip(chip, ""));
  constexpr size_t kIndent = 11;  // of what stands beside names
  std::string text;
  std::istringstream portrait(Portrait(file.chip));
  for (std::string line; std::getline(portrait, line);) text += Sentence(line, kIndent);
  text += "\n";
  text += flags.verbose ? Long(parameters) : Short(parameters);
  if (flags.verbose) {
    text += "\n" + Paragraph("slices ", 2, MarkedSlices(file.chip));
    text += "* all axes are rings, + some are\n";
  } else {
    const auto defaults = std::count_if(parameters.begin(), parameters.end(), IsDefault);
    if (defaults > 0) text += fmt::format("{} more parameters have their defaults.\n", defaults);
    text += Sentence(
        "--verbose adds full sources, notes on them and all slices; --compiler shows what the TPU "
        "compiler does.");
  }
  return PrintResult(text);
}

}  // namespace

Command AddConfigs(CLI::App& parent) {
  auto flags = std::make_shared<ConfigsFlags>();
  CLI::App* app = parent.add_subcommand("configs", "List chips, slices and parameters");
  CLI::Option* name = app->add_option("name", flags->name, "A chip, such as v5e, or a chip file")
                          ->type_name("CHIP");
  app->add_flag("-v,--verbose", flags->verbose, "Print full sources and notes")->needs(name);
  app->add_flag("--compiler", flags->compiler, "Print the policy of the TPU compiler on this "
                                               "chip")->needs(name);
  app->add_flag("--json", flags->json, "Print JSON; for a chip, with all parameters");
  AddExamples(*app,
              {{"tpusim configs", "chips and slices"},
               {"tpusim configs v5e", "what a chip is made of, and where each figure is from"},
               {"tpusim configs v5e --compiler",
                "what the TPU compiler does there, and how that was found"},
               {"tpusim configs v5e --json", "all parameters, for programs"}});
  return {app, [flags] { return Configs(*flags); }};
}

}  // namespace tpusim::tools
