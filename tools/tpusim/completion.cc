// tpusim completion: a script that lets a shell complete subcommands, options and their values.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tools/tpusim/command.h"
#include "tools/tpusim/console.h"
#include "tools/tpusim/help.h"
#include "tools/tpusim/option_list.h"
#include "tools/tpusim/values.h"

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

// What one command completes: its options, their values, and the words it takes.
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
  // `=` separates words: of --config=v5e- the option is two before. What ends in `=` goes on
  // without a blank; where no value fits it may be a file, such as a configuration.
  return fmt::format(
      "_tpusim() {{\n"
      "  local current=\"${{COMP_WORDS[COMP_CWORD]}}\" before=\"${{COMP_WORDS[COMP_CWORD-1]}}\"\n"
      "  local options arguments words=\"\" files=\"\" option=\"\"\n"
      "  if [[ \"$current\" == \"=\" ]]; then\n"
      "    current=\"\"\n"
      "  elif [[ \"$before\" == \"=\" ]]; then\n"
      "    before=\"${{COMP_WORDS[COMP_CWORD-2]}}\"\n"
      "  fi\n"
      "  case \"${{COMP_WORDS[1]}}\" in\n{}{}  esac\n"
      "  if [[ -n \"$words\" ]]; then\n"
      "    COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
      "    [[ \"${{COMPREPLY[0]-}}\" == *= ]] && option=nospace\n"
      "    ((${{#COMPREPLY[@]}})) || files=yes\n"
      "  elif [[ \"$current\" == -* ]]; then\n"
      "    COMPREPLY=($(compgen -W \"$options\" -- \"$current\"))\n"
      "  elif ((COMP_CWORD == 1)); then\n"
      "    COMPREPLY=($(compgen -W \"{}\" -- \"$current\")) files=yes\n"
      "  else\n"
      "    COMPREPLY=($(compgen -W \"$arguments\" -- \"$current\")) files=yes\n"
      "  fi\n"
      "  if [[ -n \"$files\" ]]; then\n"
      "    COMPREPLY+=($(compgen -f -- \"$current\")) option=filenames\n"
      "  fi\n"
      "  if [[ -n \"$option\" ]] && type compopt &>/dev/null; then\n"
      "    compopt -o \"$option\" 2>/dev/null\n"
      "  fi\n"
      "  return 0\n"
      "}}\n"
      "if type compopt &>/dev/null; then\n"
      "  complete -F _tpusim tpusim\n"
      "else\n"
      "  complete -o filenames -F _tpusim tpusim\n"
      "fi\n",
      cases, run, fmt::join(names, " "));
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
  app->add_option("shell", *shell, "Of this shell")
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
