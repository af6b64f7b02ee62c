// Whose source line an operation has.
//
// JAX notes the stack of every operation. Its innermost frame outside of JAX may lie in a package
// that the user has not written (flax/nnx/nn/linear.py), where nothing can be changed.
#ifndef TPUSIM_WORKLOADS_HLO_IO_OWN_FRAMES_H_
#define TPUSIM_WORKLOADS_HLO_IO_OWN_FRAMES_H_

#include <string>
#include <vector>

#include "workloads/hlo/hlo.pb.h"

namespace tpusim::hlo {

// Gives each frame in a file of a package the location of the innermost frame around it that is in
// none; frames without such a one stay. Files of packages are `library_files`, which the exporter
// knows, and those whose path says so (site-packages, dist-packages).
void AttributeToOwnFrames(const std::vector<std::string>& library_files,
                          pb::StackFrameIndexProto& index);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_IO_OWN_FRAMES_H_
