// What every fuzzer does with one input.
#ifndef TPUSIM_TESTS_FUZZ_EXERCISE_H_
#define TPUSIM_TESTS_FUZZ_EXERCISE_H_

#include <string>

namespace tpusim::fuzz {

// Imports the bytes. A refusal must say why; an accepted module must survive all
// that reads a verified module, come back from a file unchanged, and stay valid
// when its calls are inlined. Anything else aborts. True: accepted.
bool Exercise(const std::string& bytes);

}  // namespace tpusim::fuzz

#endif  // TPUSIM_TESTS_FUZZ_EXERCISE_H_
