#include <utility>

#include "configs/config.h"
#include "configs/status_macros.h"
#include "models/isa/verify.h"
#include "stages.h"
#include "workloads/compiler/session.h"
#include "workloads/hlo/io/import.h"

namespace tpusim::fuzz {
namespace {

const configs::Config& Slice() {
  static const auto* config =
      new configs::Config(configs::LoadConfig("v5e-4x2", /*overrides=*/{}).value());
  return *config;
}

compiler::CompileOptions Options() {
  compiler::CompileOptions options;
  options.trip_counts = {{"*", 3}};
  options.stated.branches = {{"*", "longest"}};
  options.stated.kernel_costs = {{.name = "*",
                                  .cost = {.flops = Flops(1000),
                                           .transcendentals = Flops(0),
                                           .bytes = Bytes(4096),
                                           .remote = Bytes(0)}}};
  return options;
}

bool ExerciseCompiler(const std::string& bytes) {
  absl::StatusOr<hlo::ImportedWorkload> imported = hlo::Import(bytes, "fuzz.pb");
  if (!imported.ok()) return false;
  const auto compiled = compiler::Compile(*std::move(imported), Slice(), Options());
  if (!compiled.ok()) {
    TPUSIM_CHECK(!compiled.status().message().empty(), "a refusal without a reason");
    return false;
  }
  const absl::Status runs = isa::Verify(compiled->program, Slice().topology);
  TPUSIM_CHECK(runs.ok(), Message(runs));
  return true;
}

std::string MutateModule(const std::string& bytes, Random* random) {
  return (*random)() % 4 == 0 ? MutateMessage(bytes, random) : MutateProgram(bytes, random);
}

}  // namespace

constexpr Stage kCompiler = {"compiler", &ExerciseCompiler, &MutateModule};

}  // namespace tpusim::fuzz
