#include <cstdint>
#include <utility>

#include "configs/status_macros.h"
#include "stages.h"
#include "workloads/hlo/analysis/compiled.h"
#include "workloads/hlo/analysis/verify.h"
#include "workloads/hlo/io/import.h"
#include "workloads/hlo/io/printer.h"
#include "workloads/hlo/io/text_parser.h"
#include "workloads/hlo/io/wire.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/analysis/loops.h"
#include "workloads/hlo/rules/cost.h"

namespace tpusim::fuzz {
namespace {

// Calls that call twice double; beyond this the compiler refuses as well.
constexpr int64_t kMaxInlined = 10000;

bool Always(const hlo::Instruction&) { return true; }

void Read(const hlo::Module& module) {
  // Names of a file may be anything; what parses is the same module again.
  const std::string text = hlo::ToString(module);
  if (const auto parsed = hlo::ParseHloText(text); parsed.ok()) {
    TPUSIM_CHECK(hlo::ToString(*parsed->module) == text, "another text: " + text);
  }
  for (const hlo::Computation* computation : module.computations()) {
    for (const hlo::Instruction* i : computation->instructions()) {
      if (!hlo::CostOf(*i).ok()) continue;
      hlo::TripCount(*i);
      if (hlo::IsCollective(i->opcode())) (void)hlo::ReplicaGroups(*i, 8);
    }
  }
}

void Rewrite(const hlo::Module& module) {
  hlo::pb::HloModuleProto proto = hlo::ToProto(module);
  const std::string once = hlo::SerializeDeterministic(proto);
  const auto again = hlo::FromProto(std::move(proto));
  TPUSIM_CHECK(again.ok(), Message(again.status()));
  TPUSIM_CHECK(hlo::SerializeDeterministic(hlo::ToProto(**again)) == once, "another module");
  const auto clone = module.Clone();
  TPUSIM_CHECK(hlo::SerializeDeterministic(hlo::ToProto(*clone)) == once, "another clone");
  // Nothing inlines calls of a compiled module; without what shows that it is one, its operations
  // on numbers of other widths are wrong.
  if (hlo::IsCompiled(*clone) || clone->InlinedSize(Always) > kMaxInlined) return;
  clone->InlineCalls(Always);
  clone->RemoveUnreachable();
  const absl::Status inlined = hlo::Verify(*clone);
  TPUSIM_CHECK(inlined.ok(), Message(inlined));
  for (hlo::Computation* computation : clone->computations()) computation->RemoveDead();
  const absl::Status swept = hlo::Verify(*clone);
  TPUSIM_CHECK(swept.ok(), Message(swept));
}

bool ExerciseImport(const std::string& bytes) {
  const auto imported = hlo::Import(bytes, "fuzz.pb");
  if (!imported.ok()) {
    const std::string message = Message(imported.status());
    TPUSIM_CHECK(message.size() > 9 && message.compare(0, 9, "fuzz.pb: ") == 0, message);
    return false;
  }
  Read(*imported->module);
  Rewrite(*imported->module);
  return true;
}

std::string MutateFile(const std::string& bytes, Random* random) {
  return (*random)() % 4 == 0 ? MutateBytes(bytes, random) : MutateMessage(bytes, random);
}

}  // namespace

constexpr Stage kImport = {"import", &ExerciseImport, &MutateFile};

}  // namespace tpusim::fuzz
