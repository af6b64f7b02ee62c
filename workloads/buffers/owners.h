// Whose the arrays are that are live when a program needs most of HBM.
//
// What an array is for follows from the data flow, and from the scopes that JAX's gradient
// leaves in op_name metadata: jvp(...) is the forward pass, transpose(...) the backward pass,
// everything else is outside of both (input, update).
//
//   parameters         donated arguments that the forward or backward pass reads, and what is
//                      made of them alone for it: casts, gathered copies
//   optimizer state    donated arguments that neither reads
//   arguments          those that are not donated; all of a program without gradient
//   results            what lives to the end, in buffers of its own
//   constants
//   saved activations  made before the backward pass, which reads them
//   gradients          made in the backward pass and read by the update, possibly after
//                      collectives and conversions
//   temporaries        the rest
#ifndef TPUSIM_WORKLOADS_BUFFERS_OWNERS_H_
#define TPUSIM_WORKLOADS_BUFFERS_OWNERS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "models/isa/program_info.h"
#include "workloads/buffers/memory_plan.h"
#include "workloads/hlo/ir/ir.h"

namespace tpusim::buffers {

struct Ownership {
  std::vector<isa::LiveArray> at_peak;  // in the order of `live_at_peak`
  std::vector<std::string> owners;      // that there are
  std::vector<int32_t> of_buffer;       // index into `owners`
};
// Finds the owners of the buffers of a plan of this module, in time linear in the module.
Ownership FindOwners(const hlo::Module& module, const MemoryPlan& plan);

}  // namespace tpusim::buffers

#endif  // TPUSIM_WORKLOADS_BUFFERS_OWNERS_H_
