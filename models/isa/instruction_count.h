// An upper estimate of the instructions that a program executes, found without running it.
//
// Trip counts multiply: a loop of a million passes inside another one is a long
// wait, and the program's text does not show it. A simulation that finds a steady
// state passes over most of what is counted here, so this is an upper estimate.
#ifndef TPUSIM_MODELS_ISA_INSTRUCTION_COUNT_H_
#define TPUSIM_MODELS_ISA_INSTRUCTION_COUNT_H_

#include <cstdint>
#include <limits>
#include <string>

#include "models/isa/program.h"

namespace tpusim::isa {

struct InstructionCount {
  // Instructions of the device with most: all streams, loops unrolled, branches taken. A double:
  // nested loops overflow every integer.
  double instructions = 0;
  // The loop with most of them: the HLO operation around it ("" = none), and its passes.
  std::string loop;
  int64_t passes = 0;
};
// Counts the program's instructions; a loop counts `most_passes` passes at most.
InstructionCount CountInstructions(const PodProgram& program,
                                   int64_t most_passes = std::numeric_limits<int64_t>::max());

}  // namespace tpusim::isa

#endif  // TPUSIM_MODELS_ISA_INSTRUCTION_COUNT_H_
