// Answers what is known of a loop before it runs: how often it runs, what its iterations keep, and
// which integers follow from the number of the iteration.
//
// Iterations are numbered from 0. A carried scalar to which every iteration adds the same is
// start + step * k in iteration k; integers made of such scalars and of constants by additions and
// multiplications are affine in k. How often a loop runs follows from the condition, which compares
// two affine values, or from the known_trip_count that a compiler wrote.
//
// Entry points: LoopFacts for one loop; ModuleLoops for passes, which find it in
// PassContext::facts; TripCount for code that asks nothing else. What a loop carries without
// changing it is in underlying.h, arrays that it reads or writes slot by slot in loop_stacks.h.
//
// An index was once followed in three places: to the counter alone, through additions, and through
// JAX's select for indices from the end. The last of them is the one that is left.
#ifndef TPUSIM_WORKLOADS_HLO_ANALYSIS_LOOPS_H_
#define TPUSIM_WORKLOADS_HLO_ANALYSIS_LOOPS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>

#include "workloads/hlo/analysis/known_values.h"
#include "workloads/hlo/ir/ir.h"

namespace tpusim::hlo {

// The integer scale * k + offset in iteration k.
struct Affine {
  int64_t scale = 0, offset = 0;
  bool operator==(const Affine&) const = default;
  // The least and the largest value in iterations 0 to trips - 1.
  std::pair<int64_t, int64_t> RangeOver(int64_t trips) const;
};

// A carried scalar by which the condition decides: it is `start` in the first iteration and in no
// other, and grows by `step`, which is not 0.
struct LoopCounter {
  int64_t index = 0;  // in the carry
  int64_t start = 0, step = 0;
};

class LoopFacts {
 public:
  // `values` must outlive this. `trips` is how often the loop runs where that is stated.
  LoopFacts(const Instruction& loop, const KnownValues& values, std::optional<int64_t> trips = {});

  const Instruction& loop() const { return loop_; }
  const Computation& body() const { return *loop_.called()[0]; }
  // nullopt: it depends on data.
  std::optional<int64_t> trips() const { return trips_; }
  // nullopt: the condition compares no such scalar.
  const std::optional<LoopCounter>& counter() const { return counter_; }

  // The integer that a scalar of the body (or an array of one element) is. nullopt: it is not
  // affine, leaves the range of its type, or the loop is not known to run.
  std::optional<Affine> AffineOf(const Instruction& value) const;

 private:
  friend class IndexFollower;
  const Instruction& loop_;
  const KnownValues& values_;
  std::optional<int64_t> trips_;
  std::optional<LoopCounter> counter_;
};

// The loops of a module, each analysed when it is asked for first.
class ModuleLoops {
 public:
  explicit ModuleLoops(const Module& module) : values_(module) {}
  ModuleLoops(const ModuleLoops&) = delete;  // facts refer to its values

  const KnownValues& values() const { return values_; }
  const LoopFacts& Of(const Instruction& loop);
  void Forget(const Instruction& loop) { known_.erase(&loop); }  // it has changed

 private:
  KnownValues values_;
  std::unordered_map<const Instruction*, std::unique_ptr<LoopFacts>> known_;  // looked up
};

// The number of iterations of a loop; nullopt: it depends on data.
std::optional<int64_t> TripCount(const Instruction& loop);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_ANALYSIS_LOOPS_H_
