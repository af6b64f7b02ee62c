#include "configs/status_macros.h"
#include "stages.h"
#include "workloads/hlo/io/printer.h"
#include "workloads/hlo/io/text_parser.h"

namespace tpusim::fuzz {
namespace {

bool ExerciseText(const std::string& bytes) {
  const auto parsed = hlo::ParseHloText(bytes);
  if (!parsed.ok()) {
    TPUSIM_CHECK(!parsed.status().message().empty(), "a refusal without a reason");
    return false;
  }
  const std::string printed = hlo::ToString(*parsed->module);
  const auto again = hlo::ParseHloText(printed);
  TPUSIM_CHECK(again.ok(), Message(again.status()) + "\n" + printed);
  TPUSIM_CHECK(hlo::ToString(*again->module) == printed, "another text: " + printed);
  return true;
}

std::string MutateLines(const std::string& bytes, Random* random) {
  return (*random)() % 8 == 0 ? MutateBytes(bytes, random) : MutateText(bytes, random);
}

}  // namespace

constexpr Stage kText = {"text", &ExerciseText, &MutateLines};

}  // namespace tpusim::fuzz
