// tpusim search: which of many shardings, batches and slices is best.
//
// The candidates are Python, as JAX programs are, so the search is part of the Python package. The
// command that the package installs does it; this binary alone says where it is.
#include <CLI/CLI.hpp>

#include "configs/status_macros.h"
#include "tools/tpusim/command.h"
#include "tools/tpusim/help.h"

namespace tpusim::tools {

Command AddSearch(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand(
      "search", "Simulate and rank many shardings, batches and slices (of the Python package)");
  app->prefix_command();
  AddExamples(*app, {{"tpusim search space.py --config v5e-4x2",
                      "what space.py defines; python -m tpusim.search --help has all options"}});
  return {app, [] {
            return UserError(
                "search is part of the Python package, which this binary was started without: "
                "install it (pip install .), or set PYTHONPATH=tools/python, then "
                "python -m tpusim.search SPACE.py");
          }};
}

}  // namespace tpusim::tools
