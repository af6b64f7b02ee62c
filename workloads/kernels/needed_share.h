// How much of a value inside a kernel is needed at all.
//
// Where a slice follows, only its part of what comes before is computed and read: the
// work of an instruction and the bytes of an operand count with the share that the
// results of the kernel depend on.
#ifndef TPUSIM_WORKLOADS_KERNELS_NEEDED_SHARE_H_
#define TPUSIM_WORKLOADS_KERNELS_NEEDED_SHARE_H_

#include <cstddef>

#include "workloads/hlo/ir/ir.h"

namespace tpusim::kernels {

// The share of one value, gathered from its users, which come first.
class NeededShare {
 public:
  // All of it: a result.
  void Whole() { by_all_ = 1; }
  // `user`, needed with `share` of its own elements, has the value as operand `index`.
  void AddUse(const hlo::Instruction& user, size_t index, double share);
  // Between 0 and 1.
  double value() const;

 private:
  double by_all_ = 0;     // most that one user needs that does not slice
  double by_slices_ = 0;  // slices may take different parts
};

}  // namespace tpusim::kernels

#endif  // TPUSIM_WORKLOADS_KERNELS_NEEDED_SHARE_H_
