// One program that is compiled and simulated many times, with other options and for other slices.
//
// It is read and normalised once. Compilations for slices of one chip share the kernels that were
// searched for, those for one slice also how collectives are done. A program that comes out as one
// before it, on the same devices and with the same options of the compiler, is neither compiled nor
// simulated again; nor is one compiled for a slice on which every question of the compiler has the
// answers of a slice before it (compiler::SliceCache::SchedulesAlike).
#ifndef TPUSIM_TOOLS_TPUSIM_FIND_VARIANT_JUDGE_H_
#define TPUSIM_TOOLS_TPUSIM_FIND_VARIANT_JUDGE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "sim/results/report/report.h"
#include "tools/tpusim/find/judge.h"
#include "tools/tpusim/pipeline/pipeline.h"

namespace tpusim::tools {

class VariantJudge {
 public:
  // Reads and normalises the program; all questions must have the same --remat. Errors: as
  // hlo::ImportFile and compiler::Normalise.
  static absl::StatusOr<std::unique_ptr<VariantJudge>> Of(const std::string& file,
                                                          const ProgramFlags& flags);
  VariantJudge(const VariantJudge&) = delete;
  VariantJudge& operator=(const VariantJudge&) = delete;

  // Returns how many partitions the program is for, at least 1.
  int64_t partitions() const;
  // Returns the slice that is asked for, or that the program names. Error: it names none.
  absl::StatusOr<std::string> SliceOf(const std::string& config) const;

  // Compiles the program that the flags ask for, with all that there is to say of it. `look` sees
  // what is scheduled, before it is lowered. Errors: as Prepare.
  using Look = std::function<void(const compiler::ScheduledProgram& scheduled)>;
  absl::StatusOr<Prepared> Compiled(const std::string& slice, const ProgramFlags& flags,
                                    const MachineFlags& machine, const Look& look = nullptr);
  // Keeps what that program came to on that machine: others may be the same.
  void Know(const results::Report& report);

  // Compiles the program, and simulates what fits unless `machine` is null. Errors: of options, the
  // compiler and the simulation, but for a program that does not fit.
  absl::StatusOr<search::Verdict> Of(const std::string& slice, const ProgramFlags& flags,
                                     const MachineFlags* machine);

 private:
  VariantJudge(std::string file, compiler::NormalisedProgram program)
      : program_(std::move(program)),
        source_{.file = std::move(file), .import = nullptr, .normalised = &program_} {}

  const compiler::NormalisedProgram program_;
  const Source source_;
  Judge judge_;
  std::string latest_;  // what identifies the program of Compiled
};

}  // namespace tpusim::tools

#endif  // TPUSIM_TOOLS_TPUSIM_FIND_VARIANT_JUDGE_H_
