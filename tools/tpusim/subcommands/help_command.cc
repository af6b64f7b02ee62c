// tpusim help and tpusim version: the same as --help and --version.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "configs/names.h"
#include "tools/tpusim/command_line/command.h"
#include "tools/tpusim/command_line/help.h"
#include "tools/tpusim/command_line/option_list.h"
#include "tools/tpusim/command_line/producer.h"
#include "tools/tpusim/output/console.h"

namespace tpusim::tools {

Command AddHelp(CLI::App& parent) {
  auto name = std::make_shared<std::string>();
  CLI::App* app = parent.add_subcommand("help", "Print the help of tpusim, or of a command");
  app->add_option("command", *name, "Command")
      ->type_name("COMMAND")
      ->check(CLI::Validator(
          [&parent](std::string& given) -> std::string {
            std::vector<std::string> names;
            for (const ListedCommand& command : CommandsOf(parent)) names.push_back(command.name);
            if (std::ranges::find(names, given) != names.end()) return "";
            return fmt::format("no command \"{}\"; the nearest is {}", given,
                               configs::Nearest(given, names));
          },
          ""));
  return {app, [name, &parent] {
            return PrintResult(
                HelpText(name->empty() ? parent : *parent.get_subcommand(*name), HelpColumns()));
          }};
}

Command AddVersion(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand("version", "Print the version");
  return {app, [] { return PrintResult("tpusim " + ThisProducer().version + "\n"); }};
}

}  // namespace tpusim::tools
