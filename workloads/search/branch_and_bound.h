// Branch and bound over a space of shardings, with a simulator as judge.
//
// A node is a mesh and what its first decisions choose; below it are all candidates that go on from
// there. Nodes wait in the order of their lower bounds. The first is taken: if it is open it
// branches on its next decision, and branches that are not possible, that cannot fit or that cannot
// be shorter than what has been found are left out with all that is below them. If it is a
// candidate it goes to the judge, who first compiles it, as far as it takes to see that it cannot
// be shorter, or equals another candidate.
//
// Before that it takes what is suggested: candidates, and what is near to one, where one decision
// is changed, then two. The sooner a short step is known, the more is left out.
//
// At any time no candidate is shorter than LowerBound(), of those that were left out and those that
// wait. It has no processes and no clock: its caller asks for candidates and tells it verdicts.
#ifndef TPUSIM_WORKLOADS_SEARCH_BRANCH_AND_BOUND_H_
#define TPUSIM_WORKLOADS_SEARCH_BRANCH_AND_BOUND_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <queue>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "configs/units.h"
#include "workloads/search/rate_bound.h"
#include "workloads/search/space.h"

namespace tpusim::search {

// The answer of a judge about a program on a slice.
struct Verdict {
  // Files keep the numbers.
  enum class Kind : uint8_t {
    kSimulated,   // a step takes `step`, and `peak` of HBM
    kBounded,     // compiled, it cannot be shorter than `bound`
    kTooLarge,    // it needs `peak` of HBM, more than there is: `why`
    kImpossible,  // the compiler refuses it: `why`
    kFits         // compiled, it takes `peak` of HBM; nobody asked for its step
  };
  Kind kind = Kind::kImpossible;
  Picoseconds bound{0}, step{0};
  Bytes peak{0}, usable{0};  // of HBM
  bool equal = false;        // another one was the same program on the same devices
  // The effort that it took: compiled further than to what each device runs, simulated.
  bool compiled = false, simulated = false;
  std::string program;  // equal for equal programs; "" = not known
  std::string why;

  bool has_step() const { return kind == Kind::kSimulated; }
};

// Choices of mesh and decisions, by what became of them.
struct Tally {
  double all = 0;
  double impossible = 0;  // an axis twice in an argument, or refused by the compiler
  double memory = 0;      // arguments alone do not fit
  double rates = 0;       // by the bound of rates
  double judged = 0;      // given to the judge
  double waiting = 0;     // neither, when the search ended
  // Counts of judged candidates, with resolutions of their conflicts.
  int64_t candidates = 0, bounded = 0, equal = 0, too_large = 0, refused = 0, simulated = 0;
};

struct Found {
  Candidate candidate;
  Verdict verdict;
};

class BranchAndBound {
 public:
  struct Options {
    // A share of the best step: what may be shorter by less is not searched for. What is searched
    // is simulated if it can be shorter at all.
    double gap = 0;
    Bytes usable{0};   // HBM that a program may take
    bool all = false;  // leave nothing out that is possible and might fit
    int32_t variant = 0;  // of the program, that candidates are of
  };
  BranchAndBound(const Space& space, const RateBound& rates, const Options& options);

  // Makes a step known from elsewhere: only shorter ones are searched for.
  void Know(Picoseconds step);
  // Puts all that differ from it in one decision, or in the mesh, before others; after them
  // those that differ in two of these.
  void SuggestNear(const Candidate& candidate);
  // Puts it, and what is near it, before all others.
  void Suggest(const Candidate& candidate);

  // Returns the candidate to judge next. Nothing: all is done, or verdicts are awaited (awaited()).
  std::optional<Candidate> Next();
  // Whether a verdict that comes from elsewhere goes with the bounds of the candidate.
  bool Believes(const Candidate& candidate, const Verdict& verdict) const {
    return CheckBounds(candidate, verdict).ok();
  }
  // Error, one of ours: a bound was above what was simulated.
  absl::Status Tell(const Candidate& candidate, const Verdict& verdict);
  int64_t awaited() const { return static_cast<int64_t>(awaited_.size()); }
  // Whether what is next was suggested, or is near to what was.
  bool suggests() const { return !first_.empty() || !pairs_.empty() || center_.has_value(); }
  // Verdicts that cannot be shorter than that need not be more exact.
  Picoseconds Cutoff() const;
  const std::optional<Found>& best() const { return best_; }
  // Returns the lower bound of every candidate of the space that fits.
  Picoseconds LowerBound() const;
  Tally tally() const;
  // Returns the candidates that were simulated.
  const std::vector<Found>& found() const { return found_; }
  // The least memory that anything took that did not fit.
  std::optional<Bytes> smallest_too_large() const { return smallest_too_large_; }

 private:
  struct Node {
    Picoseconds bound{0};
    Bytes memory{0};
    size_t mesh = 0;
    std::vector<AxisSet> axes;
  };
  struct Later {
    bool operator()(const Node& a, const Node& b) const;
  };
  using Key = std::pair<int32_t, std::vector<AxisSet>>;

  // Choices below a partial one that the judge did not get.
  double Below(size_t mesh, const std::vector<AxisSet>& decided) const;
  void Branch(const Node& node);
  // Whether it is a choice of the space that might fit and be shorter than what is known.
  bool Promises(size_t mesh, const std::vector<AxisSet>& axes) const;
  // Finds choices that differ from `center_` in two decisions, or in the mesh and one.
  void FindPairs();
  // Adds it to what waits, or counts it as left out.
  void Admit(Node node);
  // A complete choice, with every resolution of its conflicts.
  void Hand(size_t mesh, const std::vector<AxisSet>& axes, std::deque<Candidate>& queue);
  bool TooLong(Picoseconds bound) const;
  // So short may something be that is not looked at.
  void LeaveOut(Picoseconds bound);
  // Error: a bound of a simulated candidate is above its step or its peak.
  absl::Status CheckBounds(const Candidate& candidate, const Verdict& verdict) const;

  const Space& space_;
  const RateBound& rates_;
  const Options options_;
  std::priority_queue<Node, std::vector<Node>, Later> open_;
  std::deque<Candidate> first_, ready_;  // suggested; of the tree
  std::optional<Key> center_;            // around which pairs of changes are still to be found
  std::deque<Key> pairs_;                // those, the ones with the lowest bounds first
  std::set<Key> handed_;                 // complete choices that were handed to the judge
  std::multimap<Picoseconds, Candidate> awaited_;
  std::optional<Found> best_;
  Picoseconds shortest_{INT64_MAX};  // of the best, and of what is known from elsewhere
  std::vector<Found> found_;
  std::set<std::string> programs_;  // of what was found
  std::optional<Picoseconds> least_left_out_;
  std::optional<Bytes> smallest_too_large_;
  Tally tally_;
};

}  // namespace tpusim::search

#endif  // TPUSIM_WORKLOADS_SEARCH_BRANCH_AND_BOUND_H_
