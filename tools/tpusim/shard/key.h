// What a verdict depends on: by these two a store finds it again.
//
//   search      the build of tpusim, the bytes of the program, the slice that it runs on and the
//               one that it is compiled for, and all options about the program and the machine
//   statements  what a candidate states: its mesh, the sharding of every argument, constraints, and
//               which variant of the program has them
//
// Options about the search itself are in neither. They decide which candidates there are, and by
// which arguments and values a candidate splits what is left to it: that is in `statements`.
#ifndef TPUSIM_TOOLS_TPUSIM_SHARD_KEY_H_
#define TPUSIM_TOOLS_TPUSIM_SHARD_KEY_H_

#include <string>

#include "absl/status/statusor.h"
#include "tools/tpusim/shard/find.h"
#include "workloads/search/space.h"

namespace tpusim::tools {

// "step on v5e-4x2, " and digests. Error: the program cannot be read.
absl::StatusOr<std::string> SearchKey(const FindProblem& problem);
std::string StatementsKey(const FindProblem& problem, const search::Candidate& candidate);

}  // namespace tpusim::tools

#endif  // TPUSIM_TOOLS_TPUSIM_SHARD_KEY_H_
