// What a program comes to (session.h), asked of many slices and variants.
//
// `fit` and `advise` ask workers, each of which has the session and keeps what it learns, and say
// on stderr what comes.
#ifndef TPUSIM_TOOLS_TPUSIM_FIND_OUTCOMES_H_
#define TPUSIM_TOOLS_TPUSIM_FIND_OUTCOMES_H_

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/tpusim/find/session.h"

namespace tpusim::tools {

// What one worker is asked.
struct Question {
  std::string name;
  std::string kin = {};  // a worker that has answered one of them knows most about the others
};

// What `make` makes of the number of each question, in workers, in the order of the questions: the
// first are asked first. `text` is what there is to say behind a name.
std::vector<absl::StatusOr<Outcome>> OutcomesOf(
    const std::vector<Question>& questions,
    const std::function<absl::StatusOr<Outcome>(size_t)>& make,
    const std::function<std::string(const absl::StatusOr<Outcome>&)>& text,
    const ProgramFlags& flags);

}  // namespace tpusim::tools

#endif  // TPUSIM_TOOLS_TPUSIM_FIND_OUTCOMES_H_
