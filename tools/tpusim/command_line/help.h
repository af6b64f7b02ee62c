// The text of --help, and the order in which it shows commands and options.
//
// One table says to which group an option belongs, whatever command it is of, so that the same
// options stand under the same heading everywhere. A command adds its examples with AddExamples.
#ifndef TPUSIM_TOOLS_TPUSIM_COMMAND_LINE_HELP_H_
#define TPUSIM_TOOLS_TPUSIM_COMMAND_LINE_HELP_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "tools/tpusim/command_line/command.h"

namespace tpusim::tools {

struct Example {
  std::string command;  // "tpusim step.pb --html step.html"
  std::string what;     // "a page to be opened in a browser"
};

// The last part of the command's help; `more` comes behind the examples.
void AddExamples(CLI::App& app, const std::vector<Example>& examples, const std::string& more = "");

// "a,b,c" with blanks, at which lines can end: "a, b, c".
std::string Spaced(const std::string& list);

// Puts every subcommand, and every option of them, into its group.
void GroupOptions(CLI::App& app);

// Returns the help of tpusim or of a subcommand, in lines of at most `width` characters, but for
// commands that are meant to be copied.
std::string HelpText(const CLI::App& app, size_t width);

// Returns the text that `tpusim` without arguments prints.
std::string ThreeToTry();

}  // namespace tpusim::tools

#endif  // TPUSIM_TOOLS_TPUSIM_COMMAND_LINE_HELP_H_
