// Two small judges of a lowered collective, without SystemC.
//
// RunBodies executes the instruction bodies on fluid links and memories (latency after the
// flow, as the machine does) and says when they end, or where they hang.
// FollowData executes the logical steps and follows every chunk of data.
#ifndef TPUSIM_TESTS_WORKLOADS_COLLECTIVES_COLLECTIVE_INTERPRETER_H_
#define TPUSIM_TESTS_WORKLOADS_COLLECTIVES_COLLECTIVE_INTERPRETER_H_

#include <string>
#include <vector>

#include "configs/config.h"
#include "models/isa/program.h"
#include "workloads/collectives/box.h"
#include "workloads/collectives/collective.h"
#include "workloads/collectives/plan.h"

namespace tpusim::collectives {

// The algorithms that tests of plans and closed forms use, unless they say otherwise.
inline const AlgorithmOverrides kFastest = {{"", kBestAlgorithm}};  // NOLINT: a vocabulary

// Decided and lowered in one go.
inline absl::StatusOr<LoweredCollective> LowerCollective(
    const configs::Config& config, const CollectiveRequest& request, isa::PodProgram& program,
    const AlgorithmOverrides& overrides = kFastest) {
  const auto decision = DecideCollective(config, request, overrides);
  if (!decision.ok()) return decision.status();
  return LowerCollective(config, request, **decision, program);
}
inline absl::StatusOr<isa::CollectiveInfo> EstimateCollective(
    const configs::Config& config, const CollectiveRequest& request,
    const AlgorithmOverrides& overrides = kFastest) {
  const auto decision = DecideCollective(config, request, overrides);
  if (!decision.ok()) return decision.status();
  return InfoOf(**decision);
}

struct BodyRun {
  std::string problem;       // empty: everybody finished and every arrival was waited for
  Picoseconds time;          // of the last device
  int64_t bytes_sent = 0;    // by all devices
  int64_t instructions = 0;  // of all bodies, loops not expanded
};
// `rounds` executions one after the other, as in a loop.
BodyRun RunBodies(const configs::Config& config, const isa::PodProgram& program,
                  const LoweredCollective& lowered, int rounds = 1);

struct DataRun {
  std::string problem;     // empty: everybody ends up with exactly what it should have
  int64_t bytes_sent = 0;  // by the members of one group
};
// Follows the data of all members of one group, at every position of the plan's dimensions.
DataRun FollowData(const Plan& plan);

}  // namespace tpusim::collectives

#endif  // TPUSIM_TESTS_WORKLOADS_COLLECTIVES_COLLECTIVE_INTERPRETER_H_
