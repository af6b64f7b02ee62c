// `tpusim advise` of a program that needs more HBM than there is: what would make it fit.
//
// There is no step to be made shorter, so variants are told by their peak, and by their step where
// they fit. Tried are what a user can change of the run (advice_variants.h), chips with more HBM
// and enough devices, and how much HBM this chip would have to have: so that the program fits with
// all that the compiler computes again, and so that it computes nothing again.
#ifndef TPUSIM_TOOLS_TPUSIM_ADVISE_ADVISE_MEMORY_H_
#define TPUSIM_TOOLS_TPUSIM_ADVISE_ADVISE_MEMORY_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "tools/tpusim/command_line/program_flags.h"
#include "tools/tpusim/find/variant_judge.h"

namespace tpusim::tools {

struct MemoryQuestion {
  std::string config;
  size_t top = 0;  // rows
  bool json = false;
  ProgramFlags program;
  MachineFlags machine;
};

// `too_much` is what the compiler says (buffers::NeededHbm).
absl::Status AdviseMemory(const MemoryQuestion& question, const absl::Status& too_much,
                          VariantJudge& judge);

}  // namespace tpusim::tools

#endif  // TPUSIM_TOOLS_TPUSIM_ADVISE_ADVISE_MEMORY_H_
