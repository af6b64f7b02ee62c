// tpusim man: the manual page.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>

#include "tools/tpusim/command_line/command.h"
#include "tools/tpusim/command_line/help.h"
#include "tools/tpusim/command_line/option_list.h"
#include "tools/tpusim/output/console.h"

namespace tpusim::tools {
namespace {

// Escapes what roff would take for its own.
std::string Roff(std::string_view text) {
  std::string escaped;
  bool at_line_start = true;
  for (const char c : text) {
    if (at_line_start && (c == '.' || c == '\'')) escaped += "\\&";
    escaped += c == '\\' ? "\\e" : c == '-' ? "\\-" : std::string(1, c);
    at_line_start = c == '\n';
  }
  return escaped;
}

// Lines as they are.
std::string Verbatim(const std::string& text) {
  return fmt::format(".PP\n.nf\n{}{}.fi\n", Roff(text), text.ends_with('\n') ? "" : "\n");
}

// Without the heading in its first line.
std::string Body(const std::string& text) { return text.substr(text.find('\n') + 1); }

std::string Page(const CLI::App& app) {
  std::string text = fmt::format(
      ".TH TPUSIM 1 \"\" \"{}\"\n"
      ".SH NAME\ntpusim \\- simulates one step of a sharded JAX program on a slice of TPUs\n"
      ".SH SYNOPSIS\n.B tpusim\n[run] \\-\\-config \\fICONFIG\\fR \\fIWORKLOAD.pb\\fR "
      "[\\fIoptions\\fR]\n.br\n.B tpusim\n\\fICOMMAND\\fR [\\fIoptions\\fR]\n"
      ".SH DESCRIPTION\n{}\n.SH COMMANDS\n",
      app.version(), Roff(app.get_description()));
  for (const ListedCommand& command : CommandsOf(app)) {
    text += fmt::format(".SS tpusim {}\n{}\n", Roff(command.name), Roff(command.description));
    for (const ListedOption& option : command.options) {
      const std::string value =
          option.value.empty() ? "" : fmt::format(" \\fI{}\\fR", Roff(option.value));
      text += fmt::format(".TP\n\\fB{}\\fR{}\n{}\n",
                          Roff(fmt::format("{}", fmt::join(option.names, ", "))), value,
                          Roff(option.description));
    }
    if (!command.footer.empty()) text += Verbatim(command.footer);
  }
  text += fmt::format(".SH EXAMPLES\n{}", Verbatim(Body(app.get_footer())));
  return text +
         ".SH EXIT STATUS\n0 success; 1 the workload or the configuration is at fault; 2 usage; 3 "
         "a "
         "limit of check is broken; 70 a bug of tpusim; 129, 130 and 143 after SIGHUP, SIGINT and "
         "SIGTERM.\n";
}

}  // namespace

Command AddMan(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand("man", "Print the manual page");
  AddExamples(*app, {{"tpusim man | man -l -", "read it"}});
  return {app, [&parent] { return PrintResult(Page(parent)); }};
}

}  // namespace tpusim::tools
