// Bodies of kernels for tests: the fuzzers' seeds (tests/fuzz/make_seeds.py has their programs).
#ifndef TPUSIM_TESTS_WORKLOADS_MOSAIC_MOSAIC_TEST_UTIL_H_
#define TPUSIM_TESTS_WORKLOADS_MOSAIC_MOSAIC_TEST_UTIL_H_

#include <fstream>
#include <iterator>
#include <string>

namespace tpusim::mosaic {

inline std::string BodyBytes(const std::string& name) {
  const std::string path = std::string(TPUSIM_SOURCE_DIR) + "/tests/fuzz/seeds/" + name + ".mosaic";
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

}  // namespace tpusim::mosaic

#endif  // TPUSIM_TESTS_WORKLOADS_MOSAIC_MOSAIC_TEST_UTIL_H_
