#include "tools/tpusim/find/key.h"

#include <fmt/format.h>

#include "configs/config_digest.h"
#include "configs/digest.h"
#include "configs/status_macros.h"
#include "tools/tpusim/output/outputs.h"

namespace tpusim::tools {

absl::StatusOr<std::string> BuildId() {
  ASSIGN_OR_RETURN(const std::string program, ReadText("/proc/self/exe"));
  return configs::Digest().Add(program).Text();
}

absl::StatusOr<std::string> QuestionKey(const std::string& file, const Machine& machine,
                                        const ProgramFlags& program, const MachineFlags& flags) {
  ASSIGN_OR_RETURN(const std::string bytes, ReadText(file));
  ASSIGN_OR_RETURN(const std::string build, BuildId());
  configs::Digest said;
  AddTo(said, program);
  AddTo(said, flags);
  AddTo(said, machine.config);
  if (machine.compiled_for) AddTo(said, *machine.compiled_for);
  return fmt::format("{} on {}, build {}, program {}, options {}", NameOf(file),
                     machine.config.name, build, configs::Digest().Add(bytes).Text(), said.Text());
}

std::string StatementsKey(const search::Statements& statements, const search::Variant& variant) {
  configs::Digest digest;
  digest.Add(search::ToString(statements.mesh), variant.donated, variant.remat.size());
  for (const remat::StatedPolicy& policy : variant.remat) digest.Add(policy.text);
  for (const auto* all : {&statements.arguments, &statements.constraints}) {
    digest.Add(all->size());
    for (const sharding::StatedConstraint& stated : *all) digest.Add(stated.values, stated.dims);
  }
  return digest.Text();
}

std::string OutcomeKey(const std::string& slice, ProgramFlags program,
                       const MachineFlags* machine) {
  configs::Digest digest;
  if (machine != nullptr) {
    digest.Add(slice);
    program.mesh = program.device_order = "";
    program.arguments = program.constraints = {};
    program.verify_passes = true;
    AddTo(digest, *machine);
  }
  AddTo(digest, program);
  return digest.Text();
}

}  // namespace tpusim::tools
