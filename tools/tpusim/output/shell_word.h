// Words of commands that are printed to be pasted into a shell.
#ifndef TPUSIM_TOOLS_TPUSIM_OUTPUT_SHELL_WORD_H_
#define TPUSIM_TOOLS_TPUSIM_OUTPUT_SHELL_WORD_H_

#include <string>

namespace tpusim::tools {

// Returns the word as a shell reads it, in double quotes if need be.
std::string ShellWord(const std::string& text);

}  // namespace tpusim::tools

#endif  // TPUSIM_TOOLS_TPUSIM_OUTPUT_SHELL_WORD_H_
