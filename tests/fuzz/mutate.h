// Mutations that know what they change: most of what they make still parses, so that
// what comes behind the parser is reached.
#ifndef TPUSIM_TESTS_FUZZ_MUTATE_H_
#define TPUSIM_TESTS_FUZZ_MUTATE_H_

#include <cstdint>
#include <optional>
#include <random>
#include <string>

#include "workloads/hlo/hlo.pb.h"
#include "workloads/workload.pb.h"

namespace tpusim::fuzz {

using Random = std::mt19937_64;

// A file as messages.
struct Input {
  std::optional<tpusim::Workload> workload;  // without its module; nullopt: a bare module
  hlo::pb::HloModuleProto module;
};
// Reads a workload, a module or HLO text; nullopt: the bytes are neither.
std::optional<Input> ReadInput(const std::string& bytes);
std::string WriteInput(Input input);

// A few fields of the workload or module set, added, removed, swapped or copied
// from elsewhere in it; bytes changed if it is neither.
std::string MutateMessage(const std::string& bytes, Random* random);
// Changes that leave most programs valid: a size, a type, a sharding, an operand, an operation
// here or wherever it occurs.
std::string MutateProgram(const std::string& bytes, Random* random);
// A few words or lines of a text left out, repeated, swapped or replaced.
std::string MutateText(const std::string& bytes, Random* random);
// A few bytes changed, cut off or moved.
std::string MutateBytes(const std::string& bytes, Random* random);

}  // namespace tpusim::fuzz

#endif  // TPUSIM_TESTS_FUZZ_MUTATE_H_
