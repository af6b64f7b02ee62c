// Files of what the TPU compiler does where costs do not decide: one for each version that is known
// to do otherwise (configs/compilers).
//
// The first has every value. A later one names the one that it is `like`, and gives what differs.
#ifndef TPUSIM_CONFIGS_COMPILER_FILES_H_
#define TPUSIM_CONFIGS_COMPILER_FILES_H_

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace tpusim::configs {

// Returns the names of the files, oldest first: "libtpu-0.0.42".
std::vector<std::string> CompilerNames();
// Returns the newest of them, which holds where nothing says another.
std::string CompilerName();
// Returns the newest of them that is not newer than this libtpu, else the oldest. `libtpu` is a
// version ("0.0.42.1") or names its build ("Built on Jun 17 2026 ... cl/933746096"); the newest, if
// it is neither.
std::string CompilerOf(std::string_view libtpu);

// Returns a file with all that it leaves to the one that it is like; null: none has that name.
const nlohmann::json* CompilerFile(const std::string& name);

}  // namespace tpusim::configs

#endif  // TPUSIM_CONFIGS_COMPILER_FILES_H_
