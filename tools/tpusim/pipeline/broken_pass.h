// Leaves what repeats a pass that breaks an invariant: the module as it was before that pass, in
// tpusim-crash-PASS-HASH.hlo in the current folder, and the `tpusim opt` command that repeats it.
//
// Nothing is kept while passes run but which one runs, and how many ran before it: copies of the
// module would cost more than the passes. When an invariant is broken, the same compilation is
// run once more and stopped in front of that pass.
#ifndef TPUSIM_TOOLS_TPUSIM_PIPELINE_BROKEN_PASS_H_
#define TPUSIM_TOOLS_TPUSIM_PIPELINE_BROKEN_PASS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tools/tpusim/command_line/program_flags.h"
#include "workloads/passes/pipeline/pipeline.h"

namespace tpusim::tools {

// Watches the passes of one compilation. While it lives, broken invariants (TPUSIM_CHECK) say what
// it has to say of them, the latest of several.
class BrokenPass : public passes::PassWatch {
 public:
  // The program whose passes run.
  struct Compiled {
    int64_t partitions = 0;
    std::vector<int64_t> device_of_partition;
  };
  // Compiles again, with the watch given, and says what is compiled. The compilation ends with the
  // watch's error.
  using Replay = std::function<absl::Status(passes::PassWatch& watch, Compiled& compiled)>;

  // `options` are those of `tpusim opt` beside the file and the pass (OptOptionsOf).
  BrokenPass(Replay replay, std::vector<std::string> options);
  ~BrokenPass() override;
  BrokenPass(const BrokenPass&) = delete;
  BrokenPass& operator=(const BrokenPass&) = delete;

  absl::Status Begin(const passes::PipelineStep& step, const hlo::Module& module) override;
  void End() override { running_ = false; }

  // The status; of one that is a bug of a pass, with the file and the command.
  absl::Status Explained(absl::Status status);

 private:
  static std::string Advice();
  // "; the module before it is in FILE, and COMMAND breaks it again", or why there is no file; ""
  // if no pass was running.
  std::string Leave();

  const Replay replay_;
  const std::vector<std::string> options_;
  BrokenPass* const outer_;  // the one that is asked when this is gone
  int64_t begun_ = 0;
  bool running_ = false;
};

// Options of `tpusim opt` that make the same compiler for the same slice, but for --device-order,
// which the replay tells. What options state of a program is in the module, once the passes
// state-... have run.
std::vector<std::string> OptOptionsOf(const std::string& slice,
                                      const std::vector<std::string>& overrides,
                                      const ProgramFlags& flags);

}  // namespace tpusim::tools

#endif  // TPUSIM_TOOLS_TPUSIM_PIPELINE_BROKEN_PASS_H_
