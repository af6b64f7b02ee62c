// tpusim completion: a script that lets a shell complete subcommands, options and slices.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "configs/config.h"
#include "tools/tpusim/command.h"
#include "tools/tpusim/console.h"
#include "tools/tpusim/option_list.h"

namespace tpusim::tools {
namespace {

std::vector<std::string> LongNames(const ListedCommand& command) {
  std::vector<std::string> names;
  for (const ListedOption& option : command.options) {
    for (const std::string& name : option.names) {
      if (name.starts_with("--")) names.push_back(name);
    }
  }
  return names;
}

std::vector<std::string> Slices() {
  std::vector<std::string> slices;
  for (const std::string& chip : configs::ChipNames()) {
    for (const std::string& slice : configs::SliceNames(chip)) {
      slices.push_back(fmt::format("{}-{}", chip, slice));
    }
  }
  return slices;
}

std::string Bash(const std::vector<ListedCommand>& commands) {
  std::vector<std::string> names;
  std::string cases;
  for (const ListedCommand& command : commands) {
    names.push_back(command.name);
    cases += fmt::format("    {}) options=\"{}\" ;;\n", command.name,
                         fmt::join(LongNames(command), " "));
    if (command.name == "run") {
      cases += fmt::format("    *) options=\"{}\" ;;\n", fmt::join(LongNames(command), " "));
    }
  }
  // Without a subcommand it is run; its case is the last.
  const size_t otherwise = cases.find("    *)");
  const size_t end = cases.find('\n', otherwise) + 1;
  cases = cases.substr(0, otherwise) + cases.substr(end) + cases.substr(otherwise, end - otherwise);
  return fmt::format(
      "_tpusim() {{\n"
      "  local current=\"${{COMP_WORDS[COMP_CWORD]}}\" before=\"${{COMP_WORDS[COMP_CWORD-1]}}\" "
      "options\n"
      "  case \"${{COMP_WORDS[1]}}\" in\n{}  esac\n"
      "  case \"$before\" in\n"
      "    -c|--config) COMPREPLY=($(compgen -W \"{}\" -- \"$current\")); return ;;\n"
      "  esac\n"
      "  if [[ \"$current\" == -* ]]; then\n"
      "    COMPREPLY=($(compgen -W \"$options\" -- \"$current\"))\n"
      "  elif ((COMP_CWORD == 1)); then\n"
      "    COMPREPLY=($(compgen -W \"{}\" -- \"$current\") $(compgen -f -- \"$current\"))\n"
      "  else\n"
      "    COMPREPLY=($(compgen -f -- \"$current\"))\n"
      "  fi\n"
      "}}\n"
      "complete -o filenames -F _tpusim tpusim\n",
      cases, fmt::join(Slices(), " "), fmt::join(names, " "));
}

// In single quotes of fish.
std::string Quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "'";
}

std::string Fish(const std::vector<ListedCommand>& commands) {
  std::string text;
  for (const ListedCommand& command : commands) {
    text += fmt::format("complete -c tpusim -n __fish_use_subcommand -a {} -d {}\n", command.name,
                        Quoted(command.description));
  }
  for (const ListedCommand& command : commands) {
    for (const ListedOption& option : command.options) {
      if (option.argument) continue;
      std::string names;
      for (const std::string& name : option.names) {
        const bool longer = name.starts_with("--");
        names += longer ? " -l " + name.substr(2) : " -s " + name.substr(1);
      }
      const bool slice = option.value == "CONFIG";
      text += fmt::format("complete -c tpusim -n '__fish_seen_subcommand_from {}'{}{}{} -d {}\n",
                          command.name, names, option.value.empty() ? "" : " -r",
                          slice ? fmt::format(" -f -a '{}'", fmt::join(Slices(), " ")) : "",
                          Quoted(option.description));
    }
  }
  return text;
}

}  // namespace

Command AddCompletion(CLI::App& parent) {
  auto shell = std::make_shared<std::string>();
  CLI::App* app = parent.add_subcommand(
      "completion", "Print a script of completions: eval \"$(tpusim completion bash)\"");
  app->add_option("shell", *shell, "bash, zsh or fish")
      ->type_name("SHELL")
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
