#include "tests/workloads/passes/pass_test.h"

#include <vector>

#include "configs/status_macros.h"
#include "workloads/hlo/io/text_parser.h"
#include "workloads/passes/passes.h"
#include "workloads/passes/pipeline/pipeline.h"

namespace tpusim::passes {
namespace {

std::unique_ptr<hlo::Module> Parsed(std::string_view text) {
  absl::StatusOr<hlo::ParsedText> parsed = hlo::ParseHloText(text);
  TPUSIM_CHECK(parsed.ok(), Message(parsed.status()));
  return std::move(parsed->module);
}

}  // namespace

PassText::PassText(std::string_view text, const std::string& config)
    : config_(configs::LoadConfig(config, {}).value()), target_(config_), module_(Parsed(text)) {
  costs_.machine = &target_;
}

absl::StatusOr<bool> PassText::Run(std::string_view passes) {
  ASSIGN_OR_RETURN(const Pipeline pipeline, ParsePipeline(passes));
  std::vector<PassRun> runs;
  return RunPipeline(pipeline, *module_, {target_, costs_}, {}, runs);
}

}  // namespace tpusim::passes
