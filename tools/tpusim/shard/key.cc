#include "tools/tpusim/shard/key.h"

#include <fmt/format.h>

#include "configs/config_digest.h"
#include "configs/digest.h"
#include "configs/status_macros.h"
#include "tools/tpusim/find/build_id.h"
#include "tools/tpusim/output/outputs.h"
#include "tools/tpusim/pipeline/pipeline.h"
#include "workloads/search/statements.h"

namespace tpusim::tools {

absl::StatusOr<std::string> SearchKey(const FindProblem& problem) {
  ASSIGN_OR_RETURN(const std::string program, ReadText(problem.options.workload));
  ASSIGN_OR_RETURN(const std::string build, BuildId());
  configs::Digest said;
  AddTo(said, problem.options.program);
  AddTo(said, problem.options.machine);
  AddTo(said, problem.config);
  if (problem.compiled_for) AddTo(said, *problem.compiled_for);
  return fmt::format("{} on {}, build {}, program {}, options {}", NameOf(problem.options.workload),
                     problem.config.name, build, configs::Digest().Add(program).Text(),
                     said.Text());
}

std::string StatementsKey(const FindProblem& problem, const search::Candidate& candidate) {
  const search::Statements statements =
      search::StatementsOf(SpaceOf(problem, candidate), candidate);
  const search::Variant& variant = VariantOf(problem, candidate);
  configs::Digest digest;
  digest.Add(search::ToString(statements.mesh), variant.donated, variant.remat.size());
  for (const remat::StatedPolicy& policy : variant.remat) digest.Add(policy.text);
  for (const auto* all : {&statements.arguments, &statements.constraints}) {
    digest.Add(all->size());
    for (const sharding::StatedConstraint& stated : *all) digest.Add(stated.values, stated.dims);
  }
  return digest.Text();
}

}  // namespace tpusim::tools
