#include "tools/tpusim/command_line/option_list.h"

#include <CLI/CLI.hpp>
#include <algorithm>

namespace tpusim::tools {
namespace {

// Without what the parser appends: ":{on,off}", ":INT in [1 - 9]".
std::string ValueName(const std::string& type_name) {
  return type_name.substr(0, std::min(type_name.find(":{"), type_name.find(":INT in [")));
}

ListedOption ListedOf(const CLI::Option& option) {
  ListedOption listed;
  for (const std::string& name : option.get_snames()) listed.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) listed.names.push_back("--" + name);
  listed.argument = listed.names.empty();
  if (listed.argument) listed.names.push_back(option.get_single_name());
  const bool has_value = option.get_items_expected_max() > 0;
  if (has_value) listed.value = ValueName(option.get_type_name());
  listed.description = option.get_description();
  listed.group = option.get_group();
  if (has_value) listed.fallback = option.get_default_str();
  for (const CLI::Option* needed : option.get_needs()) {
    const std::vector<std::string>& names = needed->get_lnames();
    listed.needs.push_back(names.empty() ? ValueName(needed->get_type_name()) : "--" + names[0]);
  }
  listed.required = option.get_required();
  listed.repeated = !listed.argument && option.get_expected_max() > 1;
  return listed;
}

}  // namespace

ListedCommand ListedOf(const CLI::App& command) {
  ListedCommand listed{command.get_name(), command.get_description(), command.get_footer(), {}};
  for (const CLI::Option* option : command.get_options()) {
    listed.options.push_back(ListedOf(*option));
  }
  return listed;
}

std::vector<ListedCommand> CommandsOf(const CLI::App& app) {
  std::vector<ListedCommand> commands;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    commands.push_back(ListedOf(*sub));
  }
  return commands;
}

}  // namespace tpusim::tools
