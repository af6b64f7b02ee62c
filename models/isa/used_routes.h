// Routes that a program sends over.
#ifndef TPUSIM_MODELS_ISA_USED_ROUTES_H_
#define TPUSIM_MODELS_ISA_USED_ROUTES_H_

#include <cstdint>
#include <vector>

#include "models/isa/program.h"

namespace tpusim::isa {

// Returns for each distinct program, in increasing order, every route that an Rdma or Signal on any
// of its streams names, in branches that are taken.
std::vector<std::vector<int32_t>> UsedRoutes(const PodProgram& program);

}  // namespace tpusim::isa

#endif  // TPUSIM_MODELS_ISA_USED_ROUTES_H_
