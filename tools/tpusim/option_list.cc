#include "tools/tpusim/option_list.h"

#include <CLI/CLI.hpp>

namespace tpusim::tools {

std::vector<ListedCommand> CommandsOf(const CLI::App& app) {
  std::vector<ListedCommand> commands;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    ListedCommand command{sub->get_name(), sub->get_description(), {}};
    for (const CLI::Option* option : sub->get_options()) {
      ListedOption listed;
      for (const std::string& name : option->get_snames()) listed.names.push_back("-" + name);
      for (const std::string& name : option->get_lnames()) listed.names.push_back("--" + name);
      listed.argument = listed.names.empty();
      if (listed.argument) listed.names.push_back(option->get_single_name());
      if (option->get_items_expected_max() > 0) listed.value = option->get_type_name();
      listed.description = option->get_description();
      command.options.push_back(std::move(listed));
    }
    commands.push_back(std::move(command));
  }
  return commands;
}

}  // namespace tpusim::tools
