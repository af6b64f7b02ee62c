#include "tools/tpusim/command_line/help.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <sstream>

#include "absl/strings/str_replace.h"
#include "configs/status_macros.h"
#include "sim/results/report/text.h"
#include "tools/tpusim/command_line/option_list.h"
#include "tools/tpusim/command_line/producer.h"

namespace tpusim::tools {
namespace {

struct Grouped {
  std::string_view group;
  std::vector<std::string_view> names;
};

// In the order in which they are shown.
const std::vector<Grouped>& OptionGroups() {
  static const auto* groups = new std::vector<Grouped>{
      {"Program",
       {"config", "chip", "larger", "long", "kernels", "axes", "trip-count", "branch",
        "kernel-cost", "kernel-time", "cost", "ragged", "routing", "mesh", "shard", "fix", "forbid",
        "keep-constraints", "may-donate", "may-constrain", "constrain", "remat", "device-order",
        "donate", "donate-argument", "keep-argument"}},
      {"Search", {"gap", "all", "seconds", "jobs", "store", "price"}},
      {"Limits", {"max-step", "max-peak", "min-mfu", "baseline", "tolerance", "two-sided"}},
      {"Compiler",
       {"emit", "body", "dump", "dump-after", "explain", "list-annotations", "print-large-constants",
        "algorithm", "passes", "xla-flags", "recompile", "no-verify-passes"}},
      {"Machine",
       {"compiler", "set", "fold", "exact-under", "detail", "slow", "link", "max-events"}},
      {kOutputGroup,
       {"output", "report", "json", "html", "xplane", "trace", "trace-chips", "trace-detail",
        "trace-blocks", "trace-totals", "write-baseline", "by", "top", "memory", "pass-timings",
        "quiet", "verbose"}},
      {"Help", {"help"}},
  };
  return *groups;
}

const std::vector<Grouped>& CommandGroups() {
  static const auto* groups = new std::vector<Grouped>{
      {"Simulate", {"run", "compare", "advise", "shard", "search", "flags", "fit", "collective"}},
      {"Judge", {"check", "validate", "calibrate"}},
      {"Look inside", {"configs", "compile", "opt", "kernel"}},
      {"Other", {"page", "schema", "completion", "man", "help", "version"}},
  };
  return *groups;
}

std::string GroupOf(const std::string& name) {
  for (const Grouped& group : OptionGroups()) {
    if (std::ranges::find(group.names, name) != group.names.end()) return std::string(group.group);
  }
  // Whether it is about output decides whether outputs state it (producer.h).
  TPUSIM_CHECK(false, "an option without a group: --" + name);
}

// A name and what it is, side by side, or where the name is too long one below the other.
void AddRow(const std::string& name, std::string_view what, size_t column, size_t width,
            std::string& text) {
  std::string first = "  " + name;
  if (first.size() + 2 > column) {
    text += first + "\n";
    first.clear();
  }
  first.resize(column, ' ');
  text += results::WrappedText(first.append(what), column, width);
}

// Narrow terminals have more room for words than for names.
size_t ColumnOf(size_t width) { return width >= 90 ? 30 : width >= 75 ? 24 : 16; }

// Returns the description as a sentence, with what the parser knows besides.
std::string Described(const ListedOption& option) {
  std::string text = option.description;
  if (option.repeated && text.find("repeat") == std::string::npos) text += "; may be repeated";
  if (!option.needs.empty()) text += fmt::format(" (with {})", fmt::join(option.needs, ", "));
  if (!option.fallback.empty()) text += fmt::format(" (default: {})", option.fallback);
  return text;
}

std::string OptionName(const ListedOption& option) {
  // A short name first, the others below each other.
  const bool has_short = option.names.front().size() == 2;
  std::string name = fmt::format("{}{}", has_short ? "" : "    ", fmt::join(option.names, ", "));
  if (!option.value.empty()) name += " " + option.value;
  return name;
}

// Lines of a footer are made of columns; what does not fit goes on below the last of them.
// Examples stay as they are: they are to be copied.
void AddFooter(const std::string& footer, size_t width, std::string& text) {
  std::istringstream lines(footer);
  for (std::string line; std::getline(lines, line);) {
    const size_t words = line.find_first_not_of(' ');
    if (line.size() <= width || words == std::string::npos ||
        line.compare(words, 7, "tpusim ") == 0) {
      text += line + "\n";
      continue;
    }
    size_t column = words;
    if (const size_t gap = line.find("  ", words); gap != std::string::npos && gap < width / 2) {
      column = line.find_first_not_of(' ', gap);
    }
    text += results::WrappedText(line, column, width);
  }
}

std::string Usage(const CLI::App& app) {
  if (app.get_parent() == nullptr) {
    return "Usage: tpusim WORKLOAD.pb [OPTIONS]      (short for: tpusim run ...)\n"
           "       tpusim COMMAND [OPTIONS]\n";
  }
  std::string usage = "Usage: tpusim " + app.get_name();
  const ListedCommand command = ListedOf(app);
  for (const ListedOption& option : command.options) {
    if (!option.argument) continue;
    usage += option.required ? " " + option.value : fmt::format(" [{}]", option.value);
  }
  return usage + " [OPTIONS]\n";
}

std::string TopHelp(const CLI::App& app, size_t width) {
  std::string text = Usage(app) + "\n";
  text += results::WrappedText(app.get_description(), 0, width);
  for (const Grouped& group : CommandGroups()) {
    text += fmt::format("\n{}:\n", group.group);
    for (const std::string_view name : group.names) {
      AddRow(std::string(name), app.get_subcommand(std::string(name))->get_description(), 14, width,
             text);
    }
  }
  text += "\nOptions:\n";
  AddRow("-h, --help", "Print this", 14, width, text);
  AddRow("--version", "Print the version", 14, width, text);
  text += "\n";
  AddFooter(app.get_footer(), width, text);
  text += "\n`tpusim help COMMAND` has the options and examples of a command.\n";
  return text;
}

}  // namespace

void AddExamples(CLI::App& app, const std::vector<Example>& examples, const std::string& more) {
  std::string text = "Examples:\n";
  for (const Example& example : examples) {
    text += fmt::format("  {}\n      {}\n", example.command, example.what);
  }
  app.footer(more.empty() ? text : text + "\n" + more);
}

std::string Spaced(const std::string& list) { return absl::StrReplaceAll(list, {{",", ", "}}); }

void GroupOptions(CLI::App& app) {
  for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    for (CLI::Option* option : command->get_options()) {
      if (!option->nonpositional()) continue;
      // What a command has put elsewhere means something else there.
      if (option->get_group() != command->option_defaults()->get_group()) continue;
      option->group(GroupOf(option->get_lnames().front()));
    }
  }
}

std::string HelpText(const CLI::App& app, size_t width) {
  if (app.get_parent() == nullptr) return TopHelp(app, width);
  const ListedCommand command = ListedOf(app);
  const size_t column = ColumnOf(width);
  std::string text = Usage(app) + "\n";
  text += results::WrappedText(command.description, 0, width);
  bool heading = false;
  for (const ListedOption& option : command.options) {
    if (!option.argument) continue;
    if (!heading) text += "\nArguments:\n";
    heading = true;
    AddRow(option.value, Described(option), column, width, text);
  }
  for (const Grouped& group : OptionGroups()) {
    heading = false;
    for (const ListedOption& option : command.options) {
      if (option.argument || option.group != group.group) continue;
      if (!heading) text += fmt::format("\n{}:\n", group.group);
      heading = true;
      AddRow(OptionName(option), Described(option), column, width, text);
    }
  }
  if (const std::string footer = app.get_footer(); !footer.empty()) {
    text += "\n";
    AddFooter(footer, width, text);
  }
  return text;
}

std::string ThreeToTry() {
  return "  tpusim step.pb --config v5e-4x2      how long a step of this program takes, and why\n"
         "  tpusim collective all-reduce 64MiB v5e-4x2\n"
         "  tpusim configs                       which chips and slices there are\n";
}

}  // namespace tpusim::tools
