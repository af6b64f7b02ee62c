// Whether a module is what the TPU compiler wrote: fused, laid out, placed and ordered.
//
// Such a module is run as it is. It is an ordinary HLO module but for two liberties that the
// compiler takes: an operation may read or write floating-point numbers of another width than its
// operands have (the conversion has become part of it), and what happens inside a kernel, such as
// the state of a collective that proceeds in it, is written down as operands and results.
#ifndef TPUSIM_WORKLOADS_HLO_ANALYSIS_COMPILED_H_
#define TPUSIM_WORKLOADS_HLO_ANALYSIS_COMPILED_H_

#include "workloads/hlo/ir/ir.h"

namespace tpusim::hlo {

// Known by its order and by the settings (`flag_configs`) that the compiler leaves on what it has
// emitted.
bool IsCompiled(const Module& module);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_ANALYSIS_COMPILED_H_
