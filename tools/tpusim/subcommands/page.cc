// tpusim page: a page of any data, for tools that have something else to show than one run.
#include "sim/results/page/page.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "configs/status_macros.h"
#include "sim/results/report/atomic_file.h"
#include "tools/tpusim/command_line/command.h"
#include "tools/tpusim/command_line/help.h"
#include "tools/tpusim/output/outputs.h"

namespace tpusim::tools {
namespace {

struct PageFlags {
  std::string data, output;
};

absl::Status MakePage(const PageFlags& flags) {
  RETURN_IF_ERROR(CheckOutputs({{"--output", flags.output}}, {{"data", flags.data}}));
  ASSIGN_OR_RETURN(const std::string json, ReadText(flags.data));
  ASSIGN_OR_RETURN(const std::string page, results::PageOfData(json));
  return results::WriteFileAtomically(flags.output, page);
}

}  // namespace

Command AddPage(CLI::App& parent) {
  auto flags = std::make_shared<PageFlags>();
  CLI::App* app = parent.add_subcommand("page", "Make a page for a browser from data");
  app->add_option("data", flags->data, "JSON of schema tpusim.page/1")
      ->type_name("DATA.json")
      ->required();
  app->add_option("-o,--output", flags->output, "File of the page")
      ->type_name("FILE")
      ->required();
  AddExamples(*app, {{"tpusim page batches.json -o batches.html", "tables and plots of your own"}});
  return {app, [flags] { return MakePage(*flags); }};
}

}  // namespace tpusim::tools
