// Whether a module is what the TPU compiler wrote: fused, laid out, placed and ordered.
//
// Such a module is run as it is. It is an ordinary HLO module but for two liberties that the
// compiler takes: an operation may read or write floating-point numbers of another width than its
// operands have (the conversion has become part of it), and what happens inside a kernel, such as
// the state of a collective that proceeds in it, is written down as operands and results.
#ifndef TPUSIM_WORKLOADS_HLO_ANALYSIS_COMPILED_H_
#define TPUSIM_WORKLOADS_HLO_ANALYSIS_COMPILED_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "workloads/hlo/ir/ir.h"

namespace tpusim::hlo {

// Recognises the schedule and the settings (`flag_configs`) that the compiler leaves on
// instructions that it has emitted. A module that only moves data (a copy to the host) has no
// settings: its layouts with tiles tell.
bool IsCompiled(const Module& module);

// The other processors that a module was compiled for: its fusions, layouts and library calls say
// nothing of a TPU.
struct OtherTarget {
  std::string_view processors;  // "CPUs"; "" if the module does not say
  const Instruction* told_by = nullptr;
};
// Recognises the backend configs that these compilers write and the libraries that they call.
OtherTarget CompiledForOther(const Module& module);

// A result that the compiler has put where an operand was (`aliasing_operands` of the backend
// config, which numbers operands and then results), if nothing reads the operand afterwards.
struct StatedAlias {
  int64_t operand = 0;
  int64_t leaf = 0;  // of the result's shape
};
std::vector<StatedAlias> StatedAliases(const Instruction& instruction);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_ANALYSIS_COMPILED_H_
