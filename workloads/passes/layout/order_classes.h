// Values whose dimensions lie in memory in one order, whatever that order is.
//
// An elementwise operation wants operands and result alike; a transpose whose result lies
// as its operand does, under other names for the dimensions, moves nothing. Such values
// form a class, and the layout of the class is chosen once. A union-find over values in
// which every link knows which dimension of the one is which of the other.
#ifndef TPUSIM_WORKLOADS_PASSES_LAYOUT_ORDER_CLASSES_H_
#define TPUSIM_WORKLOADS_PASSES_LAYOUT_ORDER_CLASSES_H_

#include <cstdint>
#include <vector>

#include "workloads/hlo/ir/ir.h"
#include "workloads/target/target.h"

namespace tpusim::passes {

// A permutation of dimensions, or dimensions fastest first.
using Dims = std::vector<int64_t>;

class OrderClasses {
 public:
  // A new value, alone in its class. Values are numbered from 0.
  int32_t Add(int64_t rank);
  // Dimension d of `a` is dimension map[d] of `b`. False, and nothing happens, if they are
  // in one class already and correspond in another way.
  bool Unite(int32_t a, int32_t b, const Dims& map);
  bool UniteEqual(int32_t a, int32_t b);

  // The value that stands for the class.
  int32_t Find(int32_t value) const;
  // Dimension d of the value is this one of the class.
  const Dims& ToClass(int32_t value) const;
  // An order of the class as one of the value, and back.
  Dims OfValue(int32_t value, const Dims& class_order) const;
  Dims OfClass(int32_t value, const Dims& value_order) const;

  int32_t size() const { return static_cast<int32_t>(parents_.size()); }
  int64_t rank(int32_t value) const { return static_cast<int64_t>(to_parent_[value].size()); }

 private:
  // Both change only how fast answers are found.
  mutable std::vector<int32_t> parents_;
  mutable std::vector<Dims> to_parent_;
  std::vector<int32_t> sizes_;
};

Dims Identity(int64_t rank);
// First `first`, then `second`: second[first[d]].
Dims Compose(const Dims& first, const Dims& second);
Dims Inverse(const Dims& permutation);

// Whether the tiles of both arrays lie in memory alike if their elements do: an operation between
// the two only gives bytes in memory another name.
bool SameTiling(const hlo::Shape& from, const hlo::Shape& to, const target::Target& target);

// A reshape takes runs of dimensions to runs of dimensions: the shortest ones with equal
// products, [4,9,3] to [4,27] is {0}{1,2} to {0}{1}. Extents of one are in none.
struct ReshapeRun {
  Dims from, to;
};
std::vector<ReshapeRun> ReshapeRuns(const Dims& from, const Dims& to);

// The order of a reshape's result in which no element moves, or empty if there is none: a run
// was torn apart. Extents of one come last.
Dims OrderThroughReshape(const Dims& from, const Dims& to, const Dims& order);

// Do operand and result of a reshape or transpose lie in memory alike?
bool MovesNothing(const hlo::Instruction& instruction, const target::Target& target);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_LAYOUT_ORDER_CLASSES_H_
