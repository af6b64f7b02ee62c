// One program that is compiled and simulated many times, with other options and for other slices.
//
// It is read and normalised once. Compilations for slices of one chip share the kernels that were
// searched for, those for one slice also how collectives are done. A program that comes out as one
// before it, on the same devices and with the same options of the compiler, is neither compiled nor
// simulated again; nor is one compiled for a slice on which every question of the compiler has the
// answers of a slice before it (compiler::Common::SameIn).
//
// A session lives in its process. What it learns before workers are begun (workers.h), they know.
#ifndef TPUSIM_TOOLS_TPUSIM_FIND_SESSION_H_
#define TPUSIM_TOOLS_TPUSIM_FIND_SESSION_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "tools/tpusim/pipeline/pipeline.h"

namespace tpusim::tools {

// What a program comes to on a slice: whether it fits into HBM, and how long a step takes.
struct Outcome {
  Bytes peak{0}, usable{0};              // of HBM
  std::string too_much = {};             // why it does not fit; "" if it does
  std::optional<Picoseconds> step = {};  // of what was simulated
  // What was done to know it: compiled means further than to what each device runs.
  bool compiled = false, simulated = false;
};

class Session {
 public:
  // Reads and normalises the program; questions must have the same --remat. Errors: as hlo::ImportFile, compiler::NormalisedOf.
  static absl::StatusOr<std::unique_ptr<Session>> Of(const std::string& file,
                                                     const ProgramFlags& flags);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  int64_t partitions() const { return partitions_; }
  // Returns the slice that is asked for, or that the program names. Errors: as SliceOf (pipeline.h).
  absl::StatusOr<std::string> SliceOf(const std::string& config) const;

  // The program that `options` ask for, with all that there is to say of it. Errors: as Prepare.
  absl::StatusOr<Prepared> Compiled(const std::string& slice, const ProgramFlags& flags,
                                    const MachineFlags& machine, compiler::CompileOptions options);
  // What that program came to on that machine: others may be the same.
  void Know(const results::Report& report);

  // Compiles the program, and simulates what fits unless `machine` is null.
  absl::StatusOr<Outcome> Ask(const std::string& slice, const ProgramFlags& flags,
                              const MachineFlags* machine);

 private:
  // A slice that is compiled for.
  struct Slice {
    Slice(const configs::Config& config, const compiler::Common* kin) : common(config, kin) {}

    compiler::Common common;
    // Holds what the latest program came to, where it was not simulated, and what was asked of it.
    std::optional<Outcome> peak;
    std::string options;
  };
  // Holds the slices of one chip, by what tells them apart.
  using Slices = std::map<std::string, std::unique_ptr<Slice>>;

  Session(std::string file, hlo::ImportedWorkload imported, int64_t partitions,
          std::optional<sharding::NormalisedModule> normalised);
  Source SourceFor(const ProgramFlags& flags, bool warns);
  Slice& OnSlice(const std::string& slice, const configs::Config& config,
                 const ProgramFlags& flags);
  const Outcome* KnownPeak(const std::string& slice, const ProgramFlags& flags);

  const std::string file_;
  const hlo::ImportedWorkload imported_;  // without its module where that is normalised
  const int64_t partitions_;
  const std::optional<sharding::NormalisedModule> normalised_;
  std::map<std::string, Slices> chips_;      // by chip and its parameters
  Slice* latest_ = nullptr;                  // that was compiled for
  std::map<std::string, Outcome> outcomes_;  // of what was simulated, by all it depends on
  std::string program_;                      // of Compiled, in the same words
};

}  // namespace tpusim::tools

#endif  // TPUSIM_TOOLS_TPUSIM_FIND_SESSION_H_
