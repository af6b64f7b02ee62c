// Measures wall time: import, compile and simulate by themselves, then the whole process from a
// workload file to its report, with its peak memory.
//
//   build/tpusim_benchmark [--benchmark_filter=simulate]
//
// Programs are those of one [1024,2048] x [2048,8192] product on eight chips in
// its three forms: all-gather first, no communication, collective matmul.
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "configs/status_macros.h"
#include "sim/simulate.h"
#include "tools/tpusim/find/pool.h"
#include "tools/tpusim/pipeline/pipeline.h"
#include "workloads/compiler/session.h"
#include "workloads/hlo/analysis/verify.h"
#include "workloads/hlo/io/import.h"
#include "workloads/hlo/io/printer.h"
#include "workloads/hlo/io/wire.h"
#include "workloads/sharding/propagation/propagate.h"

namespace {

constexpr char kSlice[] = "v5e-4x2";

std::string File(const std::string& program) {
  return std::string(TPUSIM_SOURCE_DIR "/workloads/examples/") + program + ".pb.gz";
}

template <typename T>
T OrDie(absl::StatusOr<T> result) {
  TPUSIM_CHECK(result.ok(), tpusim::Message(result.status()));
  return *std::move(result);
}

void Import(benchmark::State& state, const std::string& program) {
  for (auto _ : state) {
    benchmark::DoNotOptimize(OrDie(tpusim::hlo::ImportFile(File(program))));
  }
}

// A perceptron of many layers on a 4x2 mesh, about `instructions` of them: per
// layer a product, a bias, a sum and an activation, weights split over y.
std::unique_ptr<tpusim::hlo::Module> DeepModule(int64_t instructions) {
  using tpusim::hlo::Instruction;
  using tpusim::hlo::Opcode;
  auto module = std::make_unique<tpusim::hlo::Module>("deep");
  (*module->mutable_fields().mutable_frontend_attributes()->mutable_map())["xla.sdy.meshes"] =
      R"({mesh = #sdy.mesh<["x"=4, "y"=2]>})";
  tpusim::hlo::Computation* main = module->AddComputation("main");
  module->set_entry(main);
  const auto f32 = [](std::vector<int64_t> dims) {
    return tpusim::hlo::MakeShape(tpusim::hlo::PrimitiveType::kF32, std::move(dims));
  };
  const auto parameter = [&](std::vector<int64_t> dims, const std::string& sharding) {
    Instruction* p = main->AddParameter(main->num_parameters(), f32(std::move(dims)), "p");
    (*p->mutable_attrs().mutable_frontend_attributes()->mutable_map())["xla.sdy.sharding"] =
        "#sdy.sharding<@mesh, " + sharding + ">";
    return p;
  };
  Instruction* value = parameter({64, 128}, R"([{"x"}, {}])");
  Instruction* weights = parameter({128, 128}, R"([{}, {"y"}])");
  Instruction* bias = parameter({128}, R"([{"y"}])");
  while (static_cast<int64_t>(main->size()) < instructions) {
    Instruction* product = main->Add(Opcode::kDot, f32({64, 128}), {value, weights});
    auto& dims = *product->mutable_attrs().mutable_dot_dimension_numbers();
    dims.add_lhs_contracting_dimensions(1);
    dims.add_rhs_contracting_dimensions(0);
    Instruction* wide = main->Add(Opcode::kBroadcast, f32({64, 128}), {bias});
    wide->mutable_attrs().add_dimensions(1);
    Instruction* sum = main->Add(Opcode::kAdd, f32({64, 128}), {product, wide});
    value = main->Add(Opcode::kTanh, f32({64, 128}), {sum});
  }
  main->set_root(value);
  return module;
}

// Shardings of a whole program; a time per instruction that does not depend on
// how many there are is what the counter shows.
void Shard(benchmark::State& state) {
  const auto module = DeepModule(state.range(0));
  for (auto _ : state) {
    benchmark::DoNotOptimize(OrDie(tpusim::sharding::ShardModule(*module, 8)));
  }
  state.counters["seconds_per_instruction"] = benchmark::Counter(
      static_cast<double>(state.range(0)),
      benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void Compile(benchmark::State& state, const std::string& program) {
  const tpusim::configs::Config config = OrDie(tpusim::configs::LoadConfig(kSlice, {}));
  for (auto _ : state) {
    state.PauseTiming();
    tpusim::hlo::ImportedWorkload imported = OrDie(tpusim::hlo::ImportFile(File(program)));
    state.ResumeTiming();
    benchmark::DoNotOptimize(OrDie(tpusim::compiler::Compile(std::move(imported), config, {})));
  }
}

// A process can simulate once: every iteration is a child that measures itself
// and hands back the seconds.
void Simulate(benchmark::State& state, const std::string& program) {
  const tpusim::tools::Prepared prepared =
      OrDie(tpusim::tools::Prepare(File(program), kSlice, {}, {}));
  int64_t events = 0;
  for (auto _ : state) {
    const auto results = tpusim::tools::InChildren(
        {[&prepared]() -> absl::StatusOr<std::string> {
          ASSIGN_OR_RETURN(const tpusim::tools::Simulated simulated,
                           tpusim::tools::Simulate(prepared, {}, {}));
          return fmt::format("{:.9f} {}", simulated.seconds, simulated.timeline.events);
        }},
        1);
    const std::string text = OrDie(results[0]);
    state.SetIterationTime(std::strtod(text.c_str(), nullptr));
    events = std::strtoll(text.c_str() + text.find(' '), nullptr, 10);
  }
  state.counters["events"] = static_cast<double>(events);
}

// tpusim from exec to exit, report and trace included.
void Process(benchmark::State& state, const std::string& program) {
  const std::string folder = std::filesystem::temp_directory_path().string();
  const std::string report = folder + "/tpusim_benchmark.json";
  const std::string trace = folder + "/tpusim_benchmark.pftrace";
  const std::string workload = File(program);
  std::vector<const char*> argv = {TPUSIM_BINARY, "run",      workload.c_str(), "--config",
                                   kSlice,        "--report", report.c_str(),   "--trace",
                                   trace.c_str(), "--quiet",  nullptr};
  int64_t max_rss_kib = 0;
  for (auto _ : state) {
    const auto start = std::chrono::steady_clock::now();
    pid_t pid = 0;
    TPUSIM_CHECK(::posix_spawn(&pid, TPUSIM_BINARY, nullptr, nullptr,
                               const_cast<char* const*>(argv.data()), environ) == 0,
                 "cannot start tpusim");
    int status = 0;
    struct rusage usage;
    ::wait4(pid, &status, 0, &usage);
    TPUSIM_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "tpusim failed");
    state.SetIterationTime(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    max_rss_kib = std::max<int64_t>(max_rss_kib, usage.ru_maxrss);
  }
  std::filesystem::remove(report);
  std::filesystem::remove(trace);
  state.counters["max_rss_MB"] = static_cast<double>(max_rss_kib) * 1024 / 1e6;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> programs = {"allgather_matmul_int32",  "local_matmul_int32",
                                             "collective_matmul_int32", "allgather_matmul_bf16",
                                             "local_matmul_bf16",       "collective_matmul_bf16"};
  for (const std::string& program : programs) {
    benchmark::RegisterBenchmark(("import/" + program).c_str(), Import, program)
        ->Unit(benchmark::kMillisecond);
    benchmark::RegisterBenchmark(("compile/" + program).c_str(), Compile, program)
        ->Unit(benchmark::kMillisecond);
    benchmark::RegisterBenchmark(("simulate/" + program).c_str(), Simulate, program)
        ->Unit(benchmark::kMillisecond)
        ->UseManualTime()
        ->Iterations(10);
    benchmark::RegisterBenchmark(("process/" + program).c_str(), Process, program)
        ->Unit(benchmark::kMillisecond)
        ->UseManualTime()
        ->Iterations(10);
  }
  benchmark::RegisterBenchmark("shard", Shard)
      ->RangeMultiplier(10)
      ->Range(1000, 100000)
      ->Unit(benchmark::kMillisecond);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
