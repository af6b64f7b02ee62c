// tpusim completion: a script that lets a shell complete subcommands, options and their values.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "configs/chip_schema.h"
#include "configs/config.h"
#include "configs/embedded_files.h"
#include "tools/tpusim/command_line/command.h"
#include "tools/tpusim/command_line/help.h"
#include "tools/tpusim/command_line/option_list.h"
#include "tools/tpusim/output/console.h"
#include "workloads/collectives/candidates.h"
#include "workloads/collectives/collective.h"
#include "workloads/passes/passes.h"

namespace tpusim::tools {
namespace {

std::vector<std::string> Slices() {
  std::vector<std::string> slices;
  for (const std::string& chip : configs::ChipNames()) {
    for (const std::string& slice : configs::SliceNames(chip)) {
      slices.push_back(fmt::format("{}-{}", chip, slice));
    }
  }
  return slices;
}

std::vector<std::string> Parameters() {
  std::vector<std::string> names = configs::ParameterPaths();
  for (std::string& name : names) name += "=";
  return names;
}

std::vector<std::string> PassNames() {
  std::vector<std::string> names;
  for (const passes::Pass& pass : passes::AllPasses()) names.emplace_back(pass.name);
  return names;
}

std::vector<std::string> Algorithms() {
  std::vector<std::string> names = {"compiler", "best"};
  const std::vector<std::string>& families = collectives::Families();
  names.insert(names.end(), families.begin(), families.end());
  return names;
}

struct NamedValues {
  std::string_view name;
  std::vector<std::string> (*values)();
};
constexpr NamedValues kValues[] = {
    {"CONFIG", Slices},
    {"CHIP", configs::ChipNames},
    {"PARAMETER=VALUE", Parameters},
    {"PASS", PassNames},
    {"PASS{OPTION=VALUE},...", PassNames},
    {"ALGORITHM", Algorithms},
    {"[KIND=]ALGORITHM", Algorithms},
    {"KIND", collectives::KindNames},
    {"SCHEMA", [] { return configs::EmbeddedNames("schemas"); }},
};

// Returns the words that can be the value of an option, by the name that help gives a value:
// "CONFIG" is a slice, "PARAMETER=VALUE" a parameter with the `=` behind, "kernel|tile" one of
// these. Empty: a file, a number, or what only the user knows.
std::vector<std::string> ValuesOf(const std::string& value_name) {
  for (const NamedValues& known : kValues) {
    if (known.name == value_name) return known.values();
  }
  // "ops|blocks": words that stand for themselves; capitals do not.
  if (value_name.find('|') == std::string::npos) return {};
  std::vector<std::string> words = absl::StrSplit(value_name, '|');
  std::erase_if(words, [](const std::string& word) {
    return word.find_first_not_of("abcdefghijklmnopqrstuvwxyz-") != std::string::npos;
  });
  return words;
}

std::vector<std::string> LongNames(const ListedCommand& command) {
  std::vector<std::string> names;
  for (const ListedOption& option : command.options) {
    for (const std::string& name : option.names) {
      if (name.starts_with("--")) names.push_back(name);
    }
  }
  return names;
}

// Options of all commands that take one of `values`, as a pattern of the shell: "-c|--config".
std::map<std::vector<std::string>, std::set<std::string>> OptionsByValues(
    const ListedCommand& command) {
  std::map<std::vector<std::string>, std::set<std::string>> by_values;
  for (const ListedOption& option : command.options) {
    if (option.argument) continue;
    const std::vector<std::string> values = ValuesOf(option.value);
    if (!values.empty()) by_values[values].insert(option.names.begin(), option.names.end());
  }
  return by_values;
}

// Words for the arguments of a command that are told by their place: those that are no files.
std::vector<std::string> ArgumentValues(const ListedCommand& command,
                                        const std::vector<std::string>& commands) {
  std::vector<std::string> words;
  for (const ListedOption& option : command.options) {
    if (!option.argument) continue;
    const std::vector<std::string> values =
        option.value == "COMMAND" ? commands : ValuesOf(option.value);
    words.insert(words.end(), values.begin(), values.end());
  }
  return words;
}

// The words that one command completes: options, their values, and arguments.
std::string BashCase(const ListedCommand& command, const std::vector<std::string>& commands) {
  std::string values;
  for (const auto& [words, names] : OptionsByValues(command)) {
    values +=
        fmt::format("        {}) words=\"{}\" ;;\n", fmt::join(names, "|"), fmt::join(words, " "));
  }
  return fmt::format(
      "      options=\"{}\"\n      arguments=\"{}\"\n      case \"$before\" in\n{}      esac ;;\n",
      fmt::join(LongNames(command), " "), fmt::join(ArgumentValues(command, commands), " "),
      values.empty() ? "        *) ;;\n" : values);
}

std::string Bash(const std::vector<ListedCommand>& commands) {
  std::vector<std::string> names;
  for (const ListedCommand& command : commands) names.push_back(command.name);
  std::string cases, run;
  for (const ListedCommand& command : commands) {
    const std::string body = BashCase(command, names);
    cases += fmt::format("    {})\n{}", command.name, body);
    // Without a subcommand it is run; its case is the last.
    if (command.name == "run") run = fmt::format("    *)\n{}", body);
  }
  // completion.bash. `=` separates words: of --config=v5e- the option is two before. What ends in
  // `=` goes on without a blank; where no value fits it may be a file, such as a configuration.
  return absl::StrReplaceAll(
      std::string(configs::EmbeddedFiles("subcommands")[0].text),
      {{"{{CASES}}", cases + run}, {"{{COMMANDS}}", fmt::format("{}", fmt::join(names, " "))}});
}

// In single quotes of fish.
std::string Quoted(const std::string& text) {
  return "'" + absl::StrReplaceAll(text, {{"'", "\\'"}, {"\\", "\\\\"}}) + "'";
}

std::string Fish(const std::vector<ListedCommand>& commands) {
  std::string text;
  std::vector<std::string> command_names;
  for (const ListedCommand& command : commands) {
    command_names.push_back(command.name);
    text += fmt::format("complete -c tpusim -n __fish_use_subcommand -a {} -d {}\n", command.name,
                        Quoted(command.description));
  }
  for (const ListedCommand& command : commands) {
    const std::string when = fmt::format("'__fish_seen_subcommand_from {}'", command.name);
    if (const auto words = ArgumentValues(command, command_names); !words.empty()) {
      text += fmt::format("complete -c tpusim -n {} -a '{}'\n", when, fmt::join(words, " "));
    }
    for (const ListedOption& option : command.options) {
      if (option.argument) continue;
      std::string names;
      for (const std::string& name : option.names) {
        const bool longer = name.starts_with("--");
        names += longer ? " -l " + name.substr(2) : " -s " + name.substr(1);
      }
      const std::vector<std::string> values = ValuesOf(option.value);
      text += fmt::format("complete -c tpusim -n {}{}{}{} -d {}\n", when, names,
                          option.value.empty() ? "" : " -r",
                          values.empty() ? "" : fmt::format(" -f -a '{}'", fmt::join(values, " ")),
                          Quoted(option.description));
    }
  }
  return text;
}

}  // namespace

Command AddCompletion(CLI::App& parent) {
  auto shell = std::make_shared<std::string>();
  CLI::App* app = parent.add_subcommand("completion", "Print a script of completions for a shell");
  AddExamples(*app, {{"eval \"$(tpusim completion bash)\"", "in ~/.bashrc; of zsh in ~/.zshrc"},
                     {"tpusim completion fish | source", "in config.fish"}});
  app->add_option("shell", *shell, "Shell")
      ->type_name("bash|zsh|fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  return {app, [shell, &parent] {
            const std::vector<ListedCommand> commands = CommandsOf(parent);
            if (*shell == "fish") return PrintResult(Fish(commands));
            const char* const as_bash = "autoload -U +X bashcompinit && bashcompinit\n";
            return PrintResult((*shell == "zsh" ? as_bash : "") + Bash(commands));
          }};
}

}  // namespace tpusim::tools
