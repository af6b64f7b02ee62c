// The version and the command line of this process, for its JSON outputs.
#ifndef TPUSIM_TOOLS_TPUSIM_COMMAND_LINE_PRODUCER_H_
#define TPUSIM_TOOLS_TPUSIM_COMMAND_LINE_PRODUCER_H_

#include <string>
#include <string_view>
#include <vector>

#include "sim/results/report/producer.h"
#include "tools/tpusim/command_line/command.h"

namespace tpusim::tools {

// Options of this group say where results are written and what is shown beside them, so they are
// not part of the command line that outputs state.
inline constexpr std::string_view kOutputGroup = "Output";

// The command that was parsed in one form, whatever the user's order and spelling: "tpusim", the
// subcommand, options as --name=value, then what is told by its place.
std::vector<std::string> CommandLineOf(const CLI::App& command);

// Set once by main, inherited by children; empty in tests.
void SetProducer(results::Producer producer);
const results::Producer& ThisProducer();

}  // namespace tpusim::tools

#endif  // TPUSIM_TOOLS_TPUSIM_COMMAND_LINE_PRODUCER_H_
