// The searches of all forms of a program as one: a tree for each, and what one finds bounds all.
//
// What was suggested comes first, of whatever form; then the tree whose bound is the lowest goes
// on. What is the best of all is judged in the other forms as well.
#ifndef TPUSIM_WORKLOADS_SEARCH_FOREST_H_
#define TPUSIM_WORKLOADS_SEARCH_FOREST_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "configs/units.h"
#include "workloads/search/branch_and_bound.h"
#include "workloads/search/rate_bound.h"
#include "workloads/search/space.h"

namespace tpusim::search {

class Forest {
 public:
  // `rates`: of each form. All must live as long.
  Forest(const Space& space, const std::vector<RateBound>& rates,
         const BranchAndBound::Options& options);

  // These are as those of BranchAndBound, whose form does not count in suggestions.
  void Know(Picoseconds step);
  void SuggestNear(const Candidate& candidate);
  void Suggest(const Candidate& candidate);
  std::optional<Candidate> Next();
  absl::Status Tell(const Candidate& candidate, const Verdict& verdict);
  Picoseconds Cutoff() const { return trees_.front().Cutoff(); }
  std::optional<Found> best() const;
  Picoseconds LowerBound() const;
  Tally tally() const;
  std::vector<Found> found() const;
  std::optional<Bytes> smallest_too_large() const;

 private:
  std::vector<BranchAndBound> trees_;
  size_t turn_ = 0;
};

}  // namespace tpusim::search

#endif  // TPUSIM_WORKLOADS_SEARCH_FOREST_H_
