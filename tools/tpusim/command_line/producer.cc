#include "tools/tpusim/command_line/producer.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <utility>

namespace tpusim::tools {
namespace {

results::Producer& Stored() {
  static auto* producer = new results::Producer;
  return *producer;
}

}  // namespace

std::vector<std::string> CommandLineOf(const CLI::App& command) {
  std::vector<std::string> line = {"tpusim", command.get_name()};
  std::vector<std::string> arguments;
  for (const CLI::Option* option : command.get_options()) {
    if (option->count() == 0 || option->get_group() == kOutputGroup) continue;
    if (!option->nonpositional()) {
      const std::vector<std::string>& values = option->results();
      arguments.insert(arguments.end(), values.begin(), values.end());
    } else if (option->get_items_expected_max() == 0) {
      line.push_back("--" + option->get_lnames().front());
    } else {
      for (const std::string& value : option->results()) {
        line.push_back(fmt::format("--{}={}", option->get_lnames().front(), value));
      }
    }
  }
  line.insert(line.end(), arguments.begin(), arguments.end());
  return line;
}

void SetProducer(results::Producer producer) { Stored() = std::move(producer); }

const results::Producer& ThisProducer() { return Stored(); }

}  // namespace tpusim::tools
