// The searches of all variants of a program as one: a tree for each, and what one finds bounds all.
//
// What was suggested comes first, of whatever variant; then the tree whose bound is the lowest goes
// on. The search takes steps: whenever a candidate is the best of all, what is near to it is
// suggested, and so is the same candidate in the other variants.
//
// The room answers which shardings of a program are worth a simulation, and what no sharding can
// beat; `Forest` is its entry point. Continuing in each variant from its own best was replaced by
// continuing from the best of all, and decisions about few bytes, which were left whole at first,
// follow the larger ones of their name (space.h).
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
  // Searches the spaces of all variants. All must live as long.
  Forest(const std::vector<Space>& spaces, const std::vector<RateBound>& rates,
         const BranchAndBound::Options& options);

  // These are as those of BranchAndBound. What is suggested, other than what is near to it, is
  // so in all variants that have the same meshes and decisions.
  void Know(Picoseconds step);
  void SuggestNear(const Candidate& candidate);
  void Suggest(const Candidate& candidate);
  std::optional<Candidate> Next();
  bool Believes(const Candidate& candidate, const Verdict& verdict) const;
  absl::Status Tell(const Candidate& candidate, const Verdict& verdict);
  Picoseconds Cutoff() const { return trees_.front().Cutoff(); }
  std::optional<Found> best() const;
  Picoseconds LowerBound() const;
  Tally tally() const;
  std::vector<Found> found() const;
  std::optional<Bytes> smallest_too_large() const;

 private:
  // Trees for which a candidate of a variant means the same.
  std::vector<BranchAndBound*> Alike(int32_t variant);

  const std::vector<Space>& spaces_;
  std::vector<BranchAndBound> trees_;
  size_t turn_ = 0;
};

}  // namespace tpusim::search

#endif  // TPUSIM_WORKLOADS_SEARCH_FOREST_H_
