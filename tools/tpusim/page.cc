// tpusim page: a page of any data, for tools that have something else to show than one run.
#include "sim/results/page.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>

#include "configs/status_macros.h"
#include "sim/results/atomic_file.h"
#include "tools/tpusim/command.h"
#include "tools/tpusim/outputs.h"

namespace tpusim::tools {
namespace {

struct PageFlags {
  std::string data, output;
};

absl::Status MakePage(const PageFlags& flags) {
  RETURN_IF_ERROR(CheckOutputs({{"--output", flags.output}}, {{"data", flags.data}}));
  std::ifstream file(flags.data, std::ios::binary);
  std::ostringstream json;
  if (!file || !(json << file.rdbuf())) {
    return UserError(fmt::format("{}: cannot be read", flags.data));
  }
  ASSIGN_OR_RETURN(const std::string page, results::PageOfData(json.str()));
  return results::WriteFileAtomically(flags.output, page);
}

}  // namespace

Command AddPage(CLI::App& parent) {
  auto flags = std::make_shared<PageFlags>();
  CLI::App* app = parent.add_subcommand("page", "Make a page for a browser from data");
  app->add_option("data", flags->data, "JSON of schema tpusim.page/1")
      ->type_name("DATA.json")
      ->required();
  app->add_option("-o,--output", flags->output, "Write the page here")
      ->type_name("FILE")
      ->required();
  return {app, [flags] { return MakePage(*flags); }};
}

}  // namespace tpusim::tools
