#include "tools/tpusim/rollup_flags.h"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <vector>

namespace tpusim::tools {

void AddRollupFlags(CLI::App& app, RollupFlags& flags) {
  std::vector<std::string> names;
  for (const results::RollupBy by : results::kRollups) names.emplace_back(results::RollupName(by));
  app.add_option("--by", flags.by,
                 "What the time of the step is told by; layers that are unrolled are one row")
      ->type_name("scope|op|source|category|collective|path")
      ->check(CLI::IsMember(names));
  app.add_option("--top", flags.top, "How many rows tables have (default: what one screen has)")
      ->type_name("N")
      ->check(CLI::Range(int64_t{1}, int64_t{1'000'000}));
}

}  // namespace tpusim::tools
