// Tracks how much of a memory is in use while a scheduled module runs, and how much time there is
// to copy beside it.
//
// A position is an instruction's place in the schedule of its computation. What is called
// at a position (the body of a loop, a branch) has positions of its own: the most that it
// uses counts at the position that calls it, and what lives there counts inside.
#ifndef TPUSIM_WORKLOADS_PASSES_SPACES_SPACE_TIMELINE_H_
#define TPUSIM_WORKLOADS_PASSES_SPACES_SPACE_TIMELINE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "configs/units.h"
#include "workloads/buffers/live_bytes.h"
#include "workloads/cost/cost_model.h"
#include "workloads/cost/schedule_graph.h"
#include "workloads/hlo/analysis/alias.h"
#include "workloads/hlo/analysis/call_graph.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/target/target.h"

namespace tpusim::passes {

class SpaceTimeline {
 public:
  // Parameters come first and elements of tuples right behind the tuple: they only name
  // what is there, and copies can start as soon as it is.
  explicit SpaceTimeline(hlo::Computation* computation);

  hlo::Computation* computation() const { return computation_; }
  const std::vector<hlo::Instruction*>& order() const { return order_; }
  size_t PositionOf(const hlo::Instruction* i) const { return position_.at(i); }
  // Whether the instruction is executed here.
  bool Has(const hlo::Instruction* i) const { return position_.contains(i); }
  // Loops around this, to the power that they count with.
  double weight() const { return weight_; }
  // Returns the number of executions in a step.
  double executions() const { return executions_; }
  // The most that arrays which are in the space already take together, of those made here.
  Bytes MostPlaced() const;
  // Nodes by position, for a replay. What is called takes no time there.
  const cost::ScheduleGraph& graph() const { return graph_; }

  // Forgets what was occupied and taken.
  void Restart();

  // Whether `bytes` more fit at all positions from `first` to `last`.
  bool Fits(size_t first, size_t last, Bytes bytes, Bytes capacity) const;
  void Occupy(size_t first, size_t last, Bytes bytes);

  // Whether windows of a kernel are larger than was known and do not fit so; they are known then.
  bool WidenWindows(size_t position, Bytes windows, Bytes capacity);

  // Returns the last position at or behind `earliest` from which copies of `length` are over before
  // `use` beside the kernels in between, which take at most `longest`; no loop, branch or call is
  // passed. Kernels count in full, whether they use HBM or not; custom calls and collectives count
  // as no time: the TPU compiler knows no cost of theirs when it places prefetches (decode steps
  // compiled by libtpu 0.0.42: weights whose way passes attention and all-reduces stay in HBM).
  std::optional<size_t> StartOfCopy(size_t earliest, size_t use, Picoseconds length,
                                    Picoseconds longest) const;
  // The first position behind `start` at which such a copy is over; at most `limit`.
  size_t EndOfCopy(size_t start, size_t limit, Picoseconds length) const;
  // Returns the time that copies may take from `first` to `last`, at most `enough`.
  Picoseconds SpareTime(size_t first, size_t last, Picoseconds enough) const;
  // A copy takes that much of it, from `first` on.
  void TakeSpareTime(size_t first, size_t last, Picoseconds length);

 private:
  friend absl::StatusOr<std::vector<std::unique_ptr<SpaceTimeline>>> SpaceTimelines(
      const hlo::CallGraph& calls, hlo::ModuleAliases& aliases, const target::Target& target,
      cost::CostModel& cost, int64_t space, double loop_weight);
  // Adds the times of all instructions; with `windows`, also the VMEM that windows of kernels take,
  // or what is kept free for them.
  absl::Status AddTimes(const target::Target& target, cost::CostModel& cost, bool windows);
  // Arrays that are in `space` already are in use from their making to their last reader. What
  // enters a called computation is in use where it is called.
  void AddPlaced(const hlo::AliasAnalysis& storage, const target::Target& target, int64_t space);
  void PassOnPeak();
  Bytes OwnAt(size_t position) const;
  Bytes Outside() const;

  hlo::Computation* computation_;
  std::vector<hlo::Instruction*> order_;
  absl::flat_hash_map<const hlo::Instruction*, size_t> position_;  // looked up, never iterated
  SpaceTimeline* caller_ = nullptr;
  size_t called_at_ = 0;
  double weight_ = 1;
  double executions_ = 1;
  cost::ScheduleGraph graph_;
  std::vector<Bytes> windows_, placed_;
  buffers::LiveBytes used_;         // own and inside
  std::vector<Bytes> inside_;       // the most that a computation called there uses
  std::vector<Picoseconds> time_;   // of kernels that the compiler knows a cost of, alone
  std::vector<Picoseconds> spare_;  // what is left of it for copies
};

// Returns timelines of every computation that runs as control flow, callers before callees. Arrays
// that are in `space` already take room from the beginning, and so do windows of kernels if it is
// VMEM. Loops count `loop_weight` times. Error: what has no cost.
absl::StatusOr<std::vector<std::unique_ptr<SpaceTimeline>>> SpaceTimelines(
    const hlo::CallGraph& calls, hlo::ModuleAliases& aliases, const target::Target& target,
    cost::CostModel& cost, int64_t space, double loop_weight);
// Callers first, as above.
void RestartAll(const std::vector<std::unique_ptr<SpaceTimeline>>& timelines);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_SPACES_SPACE_TIMELINE_H_
