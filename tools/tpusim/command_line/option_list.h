// The subcommands and options of the command line as data, for help, completion and the man page.
#ifndef TPUSIM_TOOLS_TPUSIM_COMMAND_LINE_OPTION_LIST_H_
#define TPUSIM_TOOLS_TPUSIM_COMMAND_LINE_OPTION_LIST_H_

#include <string>
#include <vector>

#include "tools/tpusim/command_line/command.h"

namespace tpusim::tools {

struct ListedOption {
  std::vector<std::string> names;  // "-c", "--config"; of an argument its name
  std::string value;               // "CONFIG"; "" = a flag
  std::string description;
  std::string group;
  std::string fallback;            // the value if it is not given; "" = none, or said in words
  std::vector<std::string> needs;  // other options
  bool argument = false;           // told by its place
  bool required = false, repeated = false;
};

struct ListedCommand {
  std::string name, description, footer;
  std::vector<ListedOption> options;
};

ListedCommand ListedOf(const CLI::App& command);
std::vector<ListedCommand> CommandsOf(const CLI::App& app);

}  // namespace tpusim::tools

#endif  // TPUSIM_TOOLS_TPUSIM_COMMAND_LINE_OPTION_LIST_H_
