// Keys of verdicts: texts of all that a verdict depends on, by which a store, or a judge,
// finds it again.
//
//   question    the build of tpusim, the bytes of the program, the slice that it runs on and the
//               one that it is compiled for, and all options about the program and the machine
//   statements  what a candidate of a search states: its mesh, the sharding of every argument,
//               constraints, and which variant of the program has them
//
// Options about the search itself are in neither. They decide which candidates there are, and by
// which arguments and values a candidate splits what is left to it: that is in `statements`.
#ifndef TPUSIM_TOOLS_TPUSIM_FIND_KEY_H_
#define TPUSIM_TOOLS_TPUSIM_FIND_KEY_H_

#include <string>

#include "absl/status/statusor.h"
#include "tools/tpusim/command_line/program_flags.h"
#include "tools/tpusim/pipeline/pipeline.h"
#include "workloads/search/program.h"
#include "workloads/search/statements.h"

namespace tpusim::tools {

// Returns a digest of the tpusim binary that runs. Builds of one digest are byte for byte the same;
// builds of one version need not be, as the version changes with releases only. Error: the binary
// cannot be read.
absl::StatusOr<std::string> BuildId();

// Returns the question about the program of a file, as "step on v5e-4x2, " and digests. Error: the
// program cannot be read.
absl::StatusOr<std::string> QuestionKey(const std::string& file, const Machine& machine,
                                        const ProgramFlags& program, const MachineFlags& flags);

std::string StatementsKey(const search::Statements& statements, const search::Variant& variant);

// Returns all that the outcome of a partitioned program depends on beside the program, within one
// process: mesh, shardings and device order are in that. `machine` null: what a compilation depends
// on beside program and slice.
std::string OutcomeKey(const std::string& slice, ProgramFlags program, const MachineFlags* machine);

}  // namespace tpusim::tools

#endif  // TPUSIM_TOOLS_TPUSIM_FIND_KEY_H_
