// tpusim configs: which chips and slices there are, and what a chip is made of.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "configs/config.h"
#include "configs/names.h"
#include "configs/status_macros.h"
#include "sim/results/text.h"
#include "tools/tpusim/command.h"
#include "tools/tpusim/console.h"

namespace tpusim::tools {
namespace {

constexpr size_t kColumns = 120;

struct ConfigsFlags {
  std::string name;
  bool verbose = false;
};

std::string List() {
  std::string text = "chip   slices (--config CHIP-SLICE)\n";
  for (const std::string& chip : configs::ChipNames()) {
    text += fmt::format("{:<6} {}\n", chip, configs::Join(configs::SliceNames(chip), " "));
  }
  return text + "\n`tpusim configs CHIP` shows the parameters of a chip.\n";
}

// "v5e", of "v5e-4x2" as well.
std::string ChipOf(const std::string& name) {
  const std::vector<std::string> chips = configs::ChipNames();
  const std::string chip = name.substr(0, name.rfind('-'));
  const bool slice_given = std::find(chips.begin(), chips.end(), chip) != chips.end();
  return slice_given ? chip : name;
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

std::string Short(const std::vector<configs::ParameterInfo>& parameters) {
  std::vector<std::vector<std::string>> rows = {{"parameter", "value", "<unit", "<source"}};
  for (const configs::ParameterInfo& p : parameters) {
    const std::string readable = Readable(p);
    rows.push_back(
        {p.path, p.value, readable.empty() ? p.unit : p.unit + " = " + readable, p.source});
  }
  std::string text;
  for (const std::string& line : results::TableLines(rows, kColumns)) text += line + "\n";
  return text;
}

std::string Long(const std::vector<configs::ParameterInfo>& parameters) {
  std::string text;
  for (const configs::ParameterInfo& p : parameters) {
    text += fmt::format("{} = {} {}\n    source: {}\n", p.path, p.value, p.unit, p.source);
    if (!p.note.empty()) text += fmt::format("    note:   {}\n", p.note);
  }
  return text;
}

absl::Status Configs(const ConfigsFlags& flags) {
  if (flags.name.empty()) return PrintResult(List());
  const std::string chip = ChipOf(flags.name);
  ASSIGN_OR_RETURN(const std::vector<configs::ParameterInfo> parameters,
                   configs::DescribeChip(chip));
  std::string text = flags.verbose ? Long(parameters) : Short(parameters);
  text += fmt::format("\nslices: {}\n", configs::Join(configs::SliceNames(chip), " "));
  if (!flags.verbose) text += "--verbose adds full sources and notes.\n";
  return PrintResult(text);
}

}  // namespace

Command AddConfigs(CLI::App& parent) {
  auto flags = std::make_shared<ConfigsFlags>();
  CLI::App* app = parent.add_subcommand("configs", "List chips, slices and parameters");
  CLI::Option* name = app->add_option("name", flags->name, "A chip, such as v5e, or a chip file")
                          ->type_name("CHIP");
  app->add_flag("-v,--verbose", flags->verbose, "With full sources and notes")->needs(name);
  return {app, [flags] { return Configs(*flags); }};
}

}  // namespace tpusim::tools
