#include "tools/tpusim/pipeline/broken_pass.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <utility>

#include "configs/check_handler.h"
#include "configs/digest.h"
#include "configs/status_macros.h"
#include "sim/results/report/atomic_file.h"
#include "tools/tpusim/output/shell_word.h"
#include "workloads/hlo/io/printer.h"
#include "workloads/hlo/ir/ir.h"

namespace tpusim::tools {
namespace {

// The watch that SetCheckAdvice asks is the latest that lives; null: none does.
BrokenPass* current = nullptr;

// Stops in front of one run of a pass, with the module as it is then.
class StopBefore : public passes::PassWatch {
 public:
  explicit StopBefore(int64_t runs) : runs_(runs) {}

  absl::Status Begin(const passes::PipelineStep& step, const hlo::Module& module) override {
    if (seen_++ < runs_) return absl::OkStatus();
    step_ = passes::ToString(step);
    pass_ = step.pass->name;
    module_ = module.Clone();
    return absl::CancelledError("this pass is not run");
  }

  const std::string& step() const { return step_; }
  const std::string& pass() const { return pass_; }
  hlo::Module* module() { return module_.get(); }

 private:
  const int64_t runs_;
  int64_t seen_ = 0;
  std::string step_, pass_;
  std::unique_ptr<hlo::Module> module_;
};

}  // namespace

std::vector<std::string> OptOptionsOf(const std::string& slice,
                                      const std::vector<std::string>& overrides,
                                      const ProgramFlags& flags) {
  std::vector<std::string> options = {"--config", slice};
  const auto add = [&](const char* option, const std::vector<std::string>& values) {
    for (const std::string& value : values) {
      options.emplace_back(option);
      options.push_back(value);
    }
  };
  add("--set", overrides);
  if (!flags.xla_flags.empty()) add("--xla-flags", {flags.xla_flags});
  add("--trip-count", flags.trip_counts);
  add("--cost", flags.costs);
  add("--algorithm", flags.algorithms);
  return options;
}

BrokenPass::BrokenPass(Replay replay, std::vector<std::string> options)
    : replay_(std::move(replay)),
      options_(std::move(options)),
      outer_(std::exchange(current, this)) {
  SetCheckAdvice(Advice);
}

BrokenPass::~BrokenPass() {
  current = outer_;
  if (current == nullptr) SetCheckAdvice(nullptr);
}

absl::Status BrokenPass::Begin(const passes::PipelineStep&, const hlo::Module&) {
  ++begun_;
  running_ = true;
  return absl::OkStatus();
}

absl::Status BrokenPass::Explained(absl::Status status) {
  if (status.code() != absl::StatusCode::kInternal) return status;
  return absl::InternalError(Message(status) + Leave());
}

std::string BrokenPass::Advice() { return current == nullptr ? "" : current->Leave(); }

std::string BrokenPass::Leave() {
  if (!std::exchange(running_, false)) return "";
  StopBefore stop(begun_ - 1);
  Compiled compiled;
  const absl::Status replayed = replay_(stop, compiled);
  if (stop.module() == nullptr) {
    return fmt::format("; the module before that pass is not known: compiled again, {}",
                       replayed.ok() ? "it does not come to that pass" : Message(replayed));
  }
  const std::string text =
      hlo::ToString(*stop.module(), {.large_constants = true,
                                     .num_partitions = compiled.partitions});
  configs::Digest digest;
  digest.Add(text);
  const std::string file =
      fmt::format("tpusim-crash-{}-{}.hlo", stop.pass(), digest.Text().substr(0, 8));
  std::string command = "tpusim opt " + file;
  for (const std::string& option : options_) command += " " + ShellWord(option);
  // Without the option, partition i runs on device i.
  const std::vector<int64_t>& devices = compiled.device_of_partition;
  for (size_t i = 0; i < devices.size(); ++i) {
    if (devices[i] == static_cast<int64_t>(i)) continue;
    command += fmt::format(" --device-order {}", fmt::join(devices, ","));
    break;
  }
  command += " --passes " + ShellWord(stop.step());
  const absl::Status written = results::WriteFileAtomically(file, text);
  if (!written.ok()) {
    return fmt::format("; the module before pass {} is not left: {}", stop.step(),
                       Message(written));
  }
  return fmt::format("; the module before pass {} is in {}; to repeat: {}", stop.step(), file,
                     command);
}

}  // namespace tpusim::tools
