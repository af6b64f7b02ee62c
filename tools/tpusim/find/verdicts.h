// Verdicts on many variants of a run, or on many slices, from workers that keep what they learn.
//
// The room answers how long variants of a run take, for shard, advise, fit and search; `VerdictsOn`
// is its entry point. Two kinds of workers, some that stay and some for one task, with a protocol
// each, were tried and rejected for one pool. Salvaging rows of damaged stores was rejected:
// SQLite's own .recover does it.
#ifndef TPUSIM_TOOLS_TPUSIM_FIND_VERDICTS_H_
#define TPUSIM_TOOLS_TPUSIM_FIND_VERDICTS_H_

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/tpusim/command_line/program_flags.h"
#include "workloads/search/branch_and_bound.h"

namespace tpusim::tools {

using VerdictOr = absl::StatusOr<search::Verdict>;

// A question to one worker.
struct Question {
  std::string name;
  std::string kin = {};  // a worker that has answered one of them knows most about the others
};

// Asks workers for the verdict on each question, by its number, and returns them in the order of
// the questions; the first are asked first. Says on stderr what comes: `text` behind the name.
std::vector<VerdictOr> VerdictsOn(const std::vector<Question>& questions,
                                  const std::function<VerdictOr(size_t)>& judge,
                                  const std::function<std::string(const VerdictOr&)>& text,
                                  const ProgramFlags& flags);

}  // namespace tpusim::tools

#endif  // TPUSIM_TOOLS_TPUSIM_FIND_VERDICTS_H_
