// Max-min fair rates.
//
// Several transfers share several servers (links, memories). What rate does each get? The max-min
// fair answer: give every transfer the same rate and raise it for all together, like water rising.
// When a server is full, the transfers that use it stop rising; when a transfer reaches its own
// cap, it stops too; the others go on. In the end every transfer is at its cap or crosses a full
// server on which no flow is faster than it, so no rate can grow except at the expense of a slower
// one. The answer is unique and does not depend on any order.
//
//   maximise (lexicographically, from the smallest)  rate[f]
//   subject to   sum over f of weight[f, r] * rate[f] <= capacity[r]   for all r
//                rate[f] <= cap[f]                                     for all f
//
// A weight is the consumption per unit of rate: a copy inside one memory reads
// and writes each byte, so its weight on that memory is 2. It is not a share:
// on a full server all flows still get the same rate.
//
// How to call: fill a MaxMinProblem with spans (flow f's uses are
// uses[use_begin[f]] .. uses[use_begin[f + 1]]) and call MaxMinSolver::Solve. A
// solver keeps its scratch memory between calls.
#ifndef TPUSIM_MODELS_FLOW_MAX_MIN_H_
#define TPUSIM_MODELS_FLOW_MAX_MIN_H_

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace tpusim::flow {

// Rates that differ by less than this (relatively) are one rate. The order of additions moves a sum
// by about 1e-16 per term, and such noise must not turn one saturation level into two.
inline constexpr double kRateTolerance = 1e-12;

struct MaxMinUse {
  uint32_t resource = 0;
  double weight = 1;  // > 0; units of the resource per unit of rate
};

struct MaxMinProblem {
  std::span<const double> capacity;     // per resource, >= 0, finite
  std::span<const double> cap;          // per flow, >= 0, may be infinite
  std::span<const uint32_t> use_begin;  // per flow, and one past the last
  std::span<const MaxMinUse> uses;      // a resource at most once per flow
};

class MaxMinSolver {
 public:
  // Writes rates[f]. Every flow must have a finite cap or at least one use.
  // Time: O(uses + (flows + resources + rounds) log).
  void Solve(const MaxMinProblem& problem, std::span<double> rates);

 private:
  struct Server {
    double residual = 0;      // capacity that the frozen flows leave
    double weight_sum = 0;    // of the flows that still rise
    double weight_scale = 0;  // weight_sum when last summed afresh
    uint32_t rising = 0;      // how many flows still rise
    uint32_t user_begin = 0;
    uint32_t user_end = 0;
  };
  struct User {
    uint32_t flow = 0;
    double weight = 0;
  };

  // Finds the smallest of numbers that only grow or go: of a few by looking at all of them, of many
  // in a heap. Equal numbers come in the order of what they belong to.
  class Smallest {
   public:
    using Entry = std::pair<double, uint32_t>;  // the number, and what it belongs to

    void Clear() { entries_.clear(); }
    void Add(double number, uint32_t of) { entries_.emplace_back(number, of); }
    // Call it after the last Add.
    void Order();
    bool empty() const { return entries_.empty(); }
    const Entry& front() const { return entries_[at_]; }
    void Pop();
    void Raise(double number);  // of the front

   private:
    void Look();

    std::vector<Entry> entries_;
    bool is_heap_ = false;
    size_t at_ = 0;  // the smallest
  };

  // The level at which the server would be full if only its rising flows rose.
  double Level(Server& server);
  void Freeze(const MaxMinProblem& problem, uint32_t flow, double rate, std::span<double> rates);

  std::vector<Server> servers_;
  std::vector<User> users_;
  std::vector<uint8_t> frozen_;
  Smallest levels_;  // of servers; may be stale
  Smallest caps_;    // of flows
};

}  // namespace tpusim::flow

#endif  // TPUSIM_MODELS_FLOW_MAX_MIN_H_
