// What one HLO instruction asks of the vector slots, per register of its result.
#ifndef TPUSIM_WORKLOADS_LOWERING_KERNELS_VECTOR_COST_H_
#define TPUSIM_WORKLOADS_LOWERING_KERNELS_VECTOR_COST_H_

#include "absl/status/statusor.h"
#include "workloads/hlo/ir.h"
#include "workloads/passes/target.h"

namespace tpusim::lowering {

// Slot operations of a whole instruction (not per register).
struct VectorWork {
  double valu = 0, eup = 0, xlu = 0;
  VectorWork& operator+=(const VectorWork& other) {
    valu += other.valu;
    eup += other.eup;
    xlu += other.xlu;
    return *this;
  }
};

// Error (no rule): an instruction that has no vector implementation here, named
// with its source line.
absl::StatusOr<VectorWork> VectorWorkOf(const hlo::Instruction& instruction,
                                        const passes::Target& target);

// Unpacking (packing) of narrow elements on their way in (out): one operation per
// 32-bit register of elements; nothing for 32-bit types.
double RepackWork(const hlo::Shape& shape, const passes::Target& target);

}  // namespace tpusim::lowering

#endif  // TPUSIM_WORKLOADS_LOWERING_KERNELS_VECTOR_COST_H_
