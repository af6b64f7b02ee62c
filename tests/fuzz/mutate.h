// Mutations that know the message: most of what they make still parses, so that
// the checks behind the parser are reached.
#ifndef TPUSIM_TESTS_FUZZ_MUTATE_H_
#define TPUSIM_TESTS_FUZZ_MUTATE_H_

#include <cstdint>
#include <random>
#include <string>

namespace tpusim::fuzz {

using Random = std::mt19937_64;

// A few fields of the workload or module set, added, removed, swapped or copied
// from elsewhere in it. The bytes as they are if they are neither.
std::string MutateMessage(const std::string& bytes, Random* random);
// A few bytes changed, cut off or moved.
std::string MutateBytes(const std::string& bytes, Random* random);

}  // namespace tpusim::fuzz

#endif  // TPUSIM_TESTS_FUZZ_MUTATE_H_
