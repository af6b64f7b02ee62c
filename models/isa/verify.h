// Verifies that the machine can run a program.
//
// Checked once before a run, for every distinct body, so that the machine need not check each
// instruction: indices within their tables, sizes that make sense, labels that nest within a body,
// kernels on TensorCore streams only. What one device does is checked with that device's routes: an
// instruction on a route that leads nowhere from there is an error.
#ifndef TPUSIM_MODELS_ISA_VERIFY_H_
#define TPUSIM_MODELS_ISA_VERIFY_H_

#include <vector>

#include "absl/status/status.h"
#include "configs/topology.h"
#include "models/isa/program.h"

namespace tpusim::isa {

// Error: what is wrong, in which program.
absl::Status Verify(const PodProgram& program, const configs::Topology& topology);

// Streams that some device uses: tensor_core[0], then the others in order.
std::vector<StreamId> StreamsOf(const PodProgram& program);

}  // namespace tpusim::isa

#endif  // TPUSIM_MODELS_ISA_VERIFY_H_
