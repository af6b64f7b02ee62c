// libFuzzer on raw bytes: detection of file kinds, gzip, the parser.
#include <cstddef>
#include <cstdint>
#include <string>

#include "exercise.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tpusim::fuzz::Exercise(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
