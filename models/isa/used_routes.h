// Which routes a program sends over, and how much.
#ifndef TPUSIM_MODELS_ISA_USED_ROUTES_H_
#define TPUSIM_MODELS_ISA_USED_ROUTES_H_

#include <cstdint>
#include <vector>

#include "models/isa/program.h"

namespace tpusim::isa {

// Per distinct program, in increasing order: every route that an Rdma or Signal
// on any of its streams names, in branches that are taken.
std::vector<std::vector<int32_t>> UsedRoutes(const PodProgram& program);

// Per distinct program and route: the bytes that a device sends over it in a step, loops
// unrolled, branches taken. A signal counts as one byte. Doubles: nested loops overflow
// every integer.
std::vector<std::vector<double>> BytesOverRoutes(const PodProgram& program);

}  // namespace tpusim::isa

#endif  // TPUSIM_MODELS_ISA_USED_ROUTES_H_
