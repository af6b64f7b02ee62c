// The entry points of libFuzzer for a stage: a file that is nothing but TPUSIM_FUZZER(STAGE).
#ifndef TPUSIM_TESTS_FUZZ_LIBFUZZER_H_
#define TPUSIM_TESTS_FUZZ_LIBFUZZER_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "stages.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace tpusim::fuzz {

// Mutations of the stage, in between those of libFuzzer, which knows what was compared with what.
inline size_t Mutate(const Stage& stage, uint8_t* data, size_t size, size_t max_size,
                     unsigned int seed) {
  Random random(seed);
  if (size == 0 || random() % 8 == 0) return LLVMFuzzerMutate(data, size, max_size);
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  const std::string mutated = stage.mutate(bytes, &random);
  if (mutated.size() > max_size || mutated.empty()) return LLVMFuzzerMutate(data, size, max_size);
  std::memcpy(data, mutated.data(), mutated.size());
  return mutated.size();
}

}  // namespace tpusim::fuzz

#define TPUSIM_FUZZER(stage)                                                             \
  extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {              \
    (stage).exercise(std::string(reinterpret_cast<const char*>(data), size));            \
    return 0;                                                                            \
  }                                                                                      \
  extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, \
                                            unsigned int seed) {                         \
    return tpusim::fuzz::Mutate((stage), data, size, max_size, seed);                    \
  }

#endif  // TPUSIM_TESTS_FUZZ_LIBFUZZER_H_
