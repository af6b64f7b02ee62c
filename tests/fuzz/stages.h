// The stages that are fuzzed, each by itself: what is done with an input, how inputs are mutated.
//
//   import    bytes of a file to a module, and all that reads one
//   text      HLO text to a module and back
//   kernel    the body of a Pallas kernel, bytecode or text, to its price
//   compiler  a module to the instruction streams of a small slice
//
// An input may be refused, but must say why. An accepted one must keep what its stage promises;
// anything else aborts. Fuzzers (libFuzzer) and `fuzz_replay` share this.
#ifndef TPUSIM_TESTS_FUZZ_STAGES_H_
#define TPUSIM_TESTS_FUZZ_STAGES_H_

#include <span>
#include <string>
#include <string_view>

#include "mutate.h"

namespace tpusim::fuzz {

struct Stage {
  std::string_view name;
  // True: accepted.
  bool (*exercise)(const std::string& bytes);
  std::string (*mutate)(const std::string& bytes, Random* random);
};

// Bytes of any kind. A module must survive all that reads a verified one, come back from a file
// unchanged, and stay valid when its calls are inlined.
extern const Stage kImport;
// Text printed of a parsed module parses, and is printed the same.
extern const Stage kText;
// Bytes as a call of a kernel carries them. What is read has a price or a reason for none.
extern const Stage kKernel;
// Import, sharding, partition, passes, lowering; the streams must be such as a machine can run.
// Up to eight partitions, on a v5e-4x2; loops on data run three times.
extern const Stage kCompiler;

}  // namespace tpusim::fuzz

#endif  // TPUSIM_TESTS_FUZZ_STAGES_H_
