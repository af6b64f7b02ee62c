// The report of a deadlock: which stream waits for which when nothing can happen any more.
#ifndef TPUSIM_SIM_DEADLOCK_H_
#define TPUSIM_SIM_DEADLOCK_H_

#include "absl/status/status.h"
#include "models/isa/program.h"
#include "sim/pod.h"

namespace tpusim::sim {

// Ok if every stream has finished. Otherwise an error that follows the waits from the first stream
// that is stuck: a wait on a flag leads to a stream that would raise it (and is stuck itself, if
// there is one), a Done to the stream that holds the token; until the chain closes or ends at a
// stream that will never do it.
absl::Status CheckFinished(Pod& pod, const isa::PodProgram& program);

}  // namespace tpusim::sim

#endif  // TPUSIM_SIM_DEADLOCK_H_
