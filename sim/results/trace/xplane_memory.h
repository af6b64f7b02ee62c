// The input of XProf's memory viewer: an HLO module with its buffers and a trace of its heap.
//
// The program itself is not in a profile; this is one of the arrays that are live when it needs
// most of HBM. In the trace they are allocated, the largest first, and then freed.
#ifndef TPUSIM_SIM_RESULTS_TRACE_XPLANE_MEMORY_H_
#define TPUSIM_SIM_RESULTS_TRACE_XPLANE_MEMORY_H_

#include "models/isa/program_info.h"
#include "sim/results/trace/xplane.pb.h"

namespace tpusim::results {

xplane::HloProto MemoryAtPeak(const isa::ProgramInfo& info);

}  // namespace tpusim::results

#endif  // TPUSIM_SIM_RESULTS_TRACE_XPLANE_MEMORY_H_
