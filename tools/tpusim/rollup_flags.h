// How a subcommand tells where the time of a step goes (sim/results/rollup.h).
#ifndef TPUSIM_TOOLS_TPUSIM_ROLLUP_FLAGS_H_
#define TPUSIM_TOOLS_TPUSIM_ROLLUP_FLAGS_H_

#include <cstddef>
#include <string>

#include "sim/results/rollup.h"

// CLI11 takes seconds to compile: only the files that register options include it.
namespace CLI {
class App;
}  // namespace CLI

namespace tpusim::tools {

struct RollupFlags {
  std::string by;  // --by, checked by the parser; "" = not given
  size_t top = 0;  // --top; 0 = not given
  results::RollupBy By(results::RollupBy otherwise) const {
    return results::RollupOf(by).value_or(otherwise);
  }
};
// `flags` must live as long as the parser.
void AddRollupFlags(CLI::App& app, RollupFlags& flags);

}  // namespace tpusim::tools

#endif  // TPUSIM_TOOLS_TPUSIM_ROLLUP_FLAGS_H_
