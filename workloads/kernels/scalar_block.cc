#include "workloads/kernels/scalar_block.h"

#include <algorithm>
#include <cmath>

#include "workloads/kernels/vector_cost.h"

namespace tpusim::kernels {

// Nothing runs beside a chain of scalars: each of the operations that the same takes of
// a register waits for the one before.
isa::Block ScalarBlock(const hlo::Instruction& i, const target::Target& target) {
  const VectorWork work = ElementwiseCost(i).value_or(VectorWork{});
  const double operations = std::max(1.0, work.valu + work.eup);
  isa::Block block;
  block.scalar =
      Cycles(std::llround(operations) * static_cast<int64_t>(target.chip().vpu.latency_cycles));
  return block;
}

}  // namespace tpusim::kernels
