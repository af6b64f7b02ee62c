// What instructions would take as one kernel, before it is made.
//
// The bound that the tile search starts from: the launch, and the longer of all
// vector and matrix work and all bytes from and to HBM. What every instruction asks of
// the vector slots and how large arrays are in memory is looked up once, so a price
// costs a few additions per instruction. Work on the way into a product is done again
// for every block of the product that reads it.
#ifndef TPUSIM_WORKLOADS_PASSES_FUSION_PRICE_H_
#define TPUSIM_WORKLOADS_PASSES_FUSION_PRICE_H_

#include <cstdint>
#include <span>
#include <vector>

#include "configs/units.h"
#include "models/isa/program.h"
#include "workloads/kernels/needed_share.h"
#include "workloads/kernels/vector_cost.h"
#include "workloads/passes/fusion/graph.h"
#include "workloads/target/target.h"

namespace tpusim::passes::fusion {

// Of a kernel alone on its chip: how long it takes, and what it reads and writes.
struct Price {
  Picoseconds time{0};
  Bytes moved{0};

  Price& operator+=(const Price& other) {
    time += other.time;
    moved += other.moved;
    return *this;
  }
  Price& operator-=(const Price& other) {
    time -= other.time;
    moved -= other.moved;
    return *this;
  }
};

class Pricing {
 public:
  Pricing(const Graph& graph, const target::Target& target);

  // Whether there is a rule for what it costs inside a fusion.
  bool HasRule(int instruction) const { return has_rule_[instruction]; }
  // Members ascending, roots among them.
  Price Of(std::span<const int> members, std::span<const int> roots);
  // How many members all prices so far had together.
  int64_t members_priced() const { return members_priced_; }
  // Arrays that such a kernel reads, scalars and what it computes for itself aside.
  int64_t CountInputs(std::span<const int> members);
  const target::Target& target() const { return target_; }
  // Bytes of the array in memory, with padding.
  Bytes SizeOf(int instruction) const { return bytes_[instruction]; }

 private:
  void Touch(int value);
  int Storage(int value) const;
  void FindShares(std::span<const int> members, std::span<const int> roots);
  void MarkSides(std::span<const int> members, int product);

  const Graph& graph_;
  const target::Target& target_;
  std::vector<char> has_rule_;
  std::vector<kernels::VectorWork> work_;
  std::vector<Bytes> bytes_;        // of the whole array
  std::vector<double> registers_;   // of 32-bit elements
  std::vector<char> spreads_rows_;  // kernels::ReductionSpreadBy
  std::vector<char> may_be_input_;  // arrays, scalars and what is free aside
  // Uses of the operands of what may be in a kernel, from first_use_ of the instruction on.
  std::vector<kernels::Use> uses_;
  std::vector<size_t> first_use_;
  // Scratch of one price: stamps say for which price an entry holds.
  int64_t stamp_ = 0;
  int64_t members_priced_ = 0;
  std::vector<int64_t> member_at_, input_at_;
  std::vector<uint8_t> side_, read_from_;
  std::vector<kernels::NeededShare> needed_;
  std::vector<int> inputs_;
  isa::Kernel kernel_;
};

}  // namespace tpusim::passes::fusion

#endif  // TPUSIM_WORKLOADS_PASSES_FUSION_PRICE_H_
