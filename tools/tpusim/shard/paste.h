// Text to paste for what was found: options of commands, and Python.
#ifndef TPUSIM_TOOLS_TPUSIM_SHARD_PASTE_H_
#define TPUSIM_TOOLS_TPUSIM_SHARD_PASTE_H_

#include <string>
#include <vector>

#include "tools/tpusim/shard/find.h"
#include "workloads/search/space.h"

namespace tpusim::tools {

// Options of `tpusim run` with which it simulates a candidate.
struct Options {
  std::string mesh;
  std::vector<std::string> arguments, constraints;
  std::vector<std::string> of_variant;  // words

  std::vector<std::string> Words() const;
};
Options OptionsOf(const FindProblem& problem, const search::Candidate& candidate);

// Returns Python for a program: the mesh, a PartitionSpec for every argument, constraints.
std::string PythonOf(const FindProblem& problem, const search::Candidate& candidate);

}  // namespace tpusim::tools

#endif  // TPUSIM_TOOLS_TPUSIM_SHARD_PASTE_H_
