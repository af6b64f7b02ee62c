// tpusim search: which of many shardings, batches and slices is best.
// tpusim flags: what options of the TPU compiler do to a step.
// tpusim calibrate: parameters of a chip, fitted to a profile.
//
// Programs are Python, as JAX is, and so are the libraries that fit, so these are part of the
// Python package. The command that the package installs does them; this binary alone says where
// they are.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <string>

#include "configs/status_macros.h"
#include "tools/tpusim/command_line/command.h"
#include "tools/tpusim/command_line/help.h"

namespace tpusim::tools {
namespace {

// A command whose options only the package knows; `file` is what it is given.
Command OfPackage(CLI::App& parent, const std::string& name, const std::string& what,
                  const std::string& file) {
  CLI::App* app = parent.add_subcommand(name, what + " (of the Python package)");
  app->prefix_command();
  return {app, [name, file] {
            return UserError(fmt::format(
                "{} is part of the Python package, which this binary was started without: "
                "install it (pip install .), or set PYTHONPATH=tools/python, then "
                "python -m tpusim.{} {}",
                name, name, file));
          }};
}

}  // namespace

Command AddSearch(CLI::App& parent) {
  Command command = OfPackage(parent, "search",
                              "Simulate and rank many shardings, batches and slices", "SPACE.py");
  AddExamples(*command.app,
              {{"tpusim search space.py --config v5e-4x2",
                "what space.py defines; python -m tpusim.search --help has all options"}});
  return command;
}

Command AddFlags(CLI::App& parent) {
  Command command =
      OfPackage(parent, "flags", "Compile with options of the TPU compiler, simulate and rank",
                "FILE.py:FUNCTION");
  AddExamples(*command.app,
              {{"tpusim flags step.py:build --config v6e-4x2",
                "the step that build() returns; python -m tpusim.flags --help has all options"}});
  return command;
}

Command AddCalibrate(CLI::App& parent) {
  Command command = OfPackage(
      parent, "calibrate", "Fit parameters of a chip to a profile that XProf took", "WORKLOAD.pb");
  AddExamples(*command.app,
              {{"tpusim calibrate step.pb --xplane logdir -o chip.json",
                "a chip file of it; python -m tpusim.calibrate --help has all options"}});
  return command;
}

}  // namespace tpusim::tools
