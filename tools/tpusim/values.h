// What can stand for the value of an option: for completion.
#ifndef TPUSIM_TOOLS_TPUSIM_VALUES_H_
#define TPUSIM_TOOLS_TPUSIM_VALUES_H_

#include <string>
#include <vector>

namespace tpusim::tools {

// By the name that help gives a value: "CONFIG" is a slice, "PARAMETER=VALUE" a parameter with the
// `=` behind, "kernel|tile" one of these. Empty: a file, a number, or what only the user knows.
std::vector<std::string> ValuesOf(const std::string& value_name);

std::vector<std::string> SchemaNames();

}  // namespace tpusim::tools

#endif  // TPUSIM_TOOLS_TPUSIM_VALUES_H_
