// Output of tpusim: results on stdout, one-line diagnostics on stderr.
#ifndef TPUSIM_TOOLS_TPUSIM_OUTPUT_CONSOLE_H_
#define TPUSIM_TOOLS_TPUSIM_OUTPUT_CONSOLE_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace tpusim::tools {

// The text on one line: line breaks become "; ", bytes that a terminal would
// interpret are escaped. Messages quote what files and users gave us.
std::string OneLine(std::string_view text);

void PrintError(std::string_view message);                     // tpusim: error: ...
void PrintInternalError(std::string_view message);             // tpusim: internal error: ...
void PrintWarnings(const std::vector<std::string>& messages);  // tpusim: warning: ...
void PrintNote(std::string_view message);                      // tpusim: ...

// Whether stderr is a terminal, on which progress can be shown.
bool IsTerminal();
// Shows "3 of 9 done" on a terminal, unless quiet.
void ShowCount(size_t done, size_t all, bool quiet);
// A line on stderr that the next one replaces; "" removes it.
void ShowProgress(std::string_view text);

// Returns the width of lines of results: on a terminal $COLUMNS if that is set, else what the
// terminal says, 60 at least. Anything else that stdout is has no edge: nothing is cut there, and
// the same command writes the same bytes wherever it runs.
size_t ResultColumns();
// Returns the width of tables that are `usual` wide where there is no edge.
size_t ResultColumns(size_t usual);
// Returns the width of help and other running text: 100 at most.
size_t HelpColumns();
// Lines of text, without what a terminal would interpret (configs/printable.h).
// Error: stdout does not take it (a full disk, a closed pipe).
absl::Status PrintResult(std::string_view result);

}  // namespace tpusim::tools

#endif  // TPUSIM_TOOLS_TPUSIM_OUTPUT_CONSOLE_H_
