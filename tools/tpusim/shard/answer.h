// The answer of `tpusim shard`, for people, programs and browsers.
#ifndef TPUSIM_TOOLS_TPUSIM_SHARD_ANSWER_H_
#define TPUSIM_TOOLS_TPUSIM_SHARD_ANSWER_H_

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "sim/results/report/compare.h"
#include "tools/tpusim/shard/find.h"

namespace tpusim::tools {

// One slice of a search.
struct SliceAnswer {
  const FindProblem* problem = nullptr;
  FindOutcome outcome;
  // The program as it is, what was found, and the next best, each as it was simulated.
  std::vector<results::Compared> compared;
};

struct AnswerOptions {
  std::optional<double> price;  // of a chip for an hour
  size_t top = 8;
  size_t width = 10'000;
  std::vector<std::string> run_words = {};  // options that `tpusim run` has to have as well
};
// Why nothing was found, in a line.
std::string NothingFound(const SliceAnswer& answer);
std::string ToText(const SliceAnswer& answer, const AnswerOptions& options);
// {"schema": "tpusim.shard/1", ..., "slices": [...]}
nlohmann::ordered_json ToJson(const std::vector<SliceAnswer>& answers,
                              const AnswerOptions& options);
// A page: the frontier of time, memory, chips and cost over all slices, what was found on each,
// what was left out and by which bound.
absl::StatusOr<std::string> PageOf(const std::vector<SliceAnswer>& answers,
                                   const AnswerOptions& options);

// --explain: decisions with their sizes, conflicts, and how large the space is.
std::string ExplainedText(const FindProblem& problem);

}  // namespace tpusim::tools

#endif  // TPUSIM_TOOLS_TPUSIM_SHARD_ANSWER_H_
