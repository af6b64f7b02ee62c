// The share of a value that a kernel needs, of what it computes and of what it reads alike.
//
// Where a slice follows, only its part of what comes before is computed and read. Two
// different slices need both parts (together at most all of it), the same slice twice
// needs it once. Shares are of the array as it lies in memory: a slice counts in whole
// tiles. One analysis serves kernels that there are and those that fusion thinks about.
#ifndef TPUSIM_WORKLOADS_KERNELS_VIEW_NEEDED_SHARE_H_
#define TPUSIM_WORKLOADS_KERNELS_VIEW_NEEDED_SHARE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "configs/units.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/target/target.h"

namespace tpusim::kernels {

// The access of an instruction to one of its operands.
enum class Access {
  kElements,     // where its own elements come from
  kSlice,        // a part of its own shape
  kRows,         // rows at indices: a transfer for each, counted beside shares
  kOverwritten,  // not read if the result takes its buffer
  kWhole,
};
Access AccessOf(const hlo::Instruction& user, size_t index);

// One operand of an instruction: what a use of it is, whatever kernel it is in.
struct Use {
  Use(const hlo::Instruction& user, size_t index, const target::Target& target);

  const hlo::Instruction* user;
  Access access;
  bool of_several = false;  // the user has several results
  // Elements of the user per element of the operand, at least 1.
  double elements = 1;
  // Bytes of a slice and of the sliced array, in whole tiles.
  double part = 0, whole = 0;
};

// The share of one value, gathered from its users, which come first.
class NeededShare {
 public:
  // Nothing of it yet.
  void Clear();
  // Needs all of the value, as a result is.
  void Whole() { by_all_ = 1; }
  // The value is the operand of this use, whose user is needed with `share` of its own elements;
  // `in_memory`: it is (a bitcast of) an operand of the kernel, which can be read at
  // indices and updated where it is. What the kernel makes itself it has to write first.
  void AddUse(const Use& use, double share, bool in_memory);
  // Between 0 and 1.
  double value() const;

 private:
  struct Slice {
    const hlo::Instruction* slice;
    double share;  // of the value
  };
  double by_all_ = 0;  // most that one user needs that does not slice
  double by_slices_ = 0;
  std::vector<Slice> slices_;  // different ones
};

// The slices of its operand that a gather takes, or that a scatter puts there.
struct IndexedSlices {
  int64_t count = 0;             // one per index vector
  std::vector<int64_t> extents;  // of each, by dimension of the operand
  // The dimension of the result (of an update) for each one of the operand; -1: none.
  std::vector<int64_t> windows;
};
IndexedSlices SlicesOf(const hlo::Instruction& instruction);

struct IndexedAccess {
  int64_t count = 0;     // slices: one per index vector
  Bytes slice_bytes{0};  // that one transfer of a slice moves, in whole granules
  Bytes Total() const { return slice_bytes * count; }
};

IndexedAccess IndexedAccessOf(const hlo::Instruction& gather_or_scatter,
                              const target::Target& target);
// The combiner gives the update whatever was there: nothing has to be read.
bool ScatterOverwrites(const hlo::Instruction& scatter);

}  // namespace tpusim::kernels

#endif  // TPUSIM_WORKLOADS_KERNELS_VIEW_NEEDED_SHARE_H_
