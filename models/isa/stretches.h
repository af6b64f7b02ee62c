// Stretches of a program that recur at once, again and again, whatever the names in them:
// what may be the iterations of an unrolled loop (iterations.h).
//
// Every instruction gets a number for what it does. Where a window of such numbers occurs
// again tells by how much the program may be shifted to meet itself; along the most
// frequent of these lengths runs of equal numbers are stretches.
#ifndef TPUSIM_MODELS_ISA_STRETCHES_H_
#define TPUSIM_MODELS_ISA_STRETCHES_H_

#include <cstddef>
#include <vector>

#include "models/isa/program.h"

namespace tpusim::isa {

// Fewer iterations cost more to find than they save.
inline constexpr size_t kFewestIterations = 6;

// Instructions [begin, begin + matches) recur `length` instructions later.
struct Stretch {
  size_t begin = 0, length = 0;
  size_t matches = 0;
};

// Those with enough iterations, in their order; none overlap. Names have yet to be compared.
std::vector<Stretch> StretchesThatRecur(const PodProgram& program,
                                        const std::vector<const Instruction*>& instructions);

}  // namespace tpusim::isa

#endif  // TPUSIM_MODELS_ISA_STRETCHES_H_
