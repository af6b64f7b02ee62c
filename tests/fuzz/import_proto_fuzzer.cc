// libFuzzer on mutated messages: what comes behind the parser.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "exercise.h"
#include "mutate.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tpusim::fuzz::Exercise(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned int seed) {
  tpusim::fuzz::Random random(seed);
  if (random() % 16 == 0) return LLVMFuzzerMutate(data, size, max_size);
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  const std::string mutated = tpusim::fuzz::MutateMessage(bytes, &random);
  if (mutated.size() > max_size || mutated.empty()) return LLVMFuzzerMutate(data, size, max_size);
  std::memcpy(data, mutated.data(), mutated.size());
  return mutated.size();
}
