// Measures wall and processor time, peak memory and events of a few runs at the scale of a pod.
//
//   build/pod_benchmark [REPEATS]
//
// Whole processes, from the exported program to its report; the best of REPEATS
// (5) runs. One line measures the machine by itself: 64 chips, none folded, that
// reduce over two axes beside a kernel bound by memory, with a straggler. Events
// are instructions retired and flows started and ended. The figures in CONTRIBUTING.md
// are of the release preset.
#include <fmt/format.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <variant>
#include <vector>

#include "configs/status_macros.h"
#include "tools/tpusim/find/pool.h"
#include "tools/tpusim/pipeline/pipeline.h"
#include "workloads/compiler/session.h"

namespace {

struct Cost {
  double seconds = std::numeric_limits<double>::infinity();
  double processor = std::numeric_limits<double>::infinity();  // seconds
  int64_t peak_kib = 0;
  int64_t events = 0;
};

void Print(const std::string& what, const Cost& cost) {
  fmt::print("{:<48}{:>8.1f}{:>8.1f}{:>9.1f}{:>10}{:>8.2f}\n", what, cost.seconds * 1e3,
             cost.processor * 1e3, static_cast<double>(cost.peak_kib) * 1024 / 1e6, cost.events,
             static_cast<double>(cost.events) / cost.processor / 1e6);
}

double ProcessorSeconds(const struct rusage& usage) {
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

template <typename T>
T OrDie(absl::StatusOr<T> result) {
  TPUSIM_CHECK(result.ok(), tpusim::Message(result.status()));
  return *std::move(result);
}

std::string File(const std::string& program) {
  return std::string(TPUSIM_SOURCE_DIR "/benchmarks/pod_programs/") + program + ".pb.gz";
}

Cost Process(const std::string& program, int repeats,
             const std::vector<const char*>& options = {}) {
  const std::string report =
      (std::filesystem::temp_directory_path() / fmt::format("pod_benchmark.{}.json", getpid()));
  const std::string workload = File(program);
  std::vector<const char*> argv = {TPUSIM_BINARY, "run",          workload.c_str(),
                                   "--report",    report.c_str(), "--quiet"};
  argv.insert(argv.end(), options.begin(), options.end());
  argv.push_back(nullptr);
  Cost cost;
  for (int i = 0; i < repeats; ++i) {
    const auto start = std::chrono::steady_clock::now();
    pid_t pid = 0;
    TPUSIM_CHECK(posix_spawn(&pid, TPUSIM_BINARY, nullptr, nullptr,
                             const_cast<char* const*>(argv.data()), environ) == 0,
                 "cannot start tpusim");
    int status = 0;
    struct rusage usage;
    wait4(pid, &status, 0, &usage);
    TPUSIM_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "tpusim failed");
    cost.seconds =
        std::min(cost.seconds,
                 std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    cost.processor = std::min(cost.processor, ProcessorSeconds(usage));
    cost.peak_kib = std::max<int64_t>(cost.peak_kib, usage.ru_maxrss);
  }
  cost.events = nlohmann::json::parse(std::ifstream(report)).at("events").get<int64_t>();
  std::filesystem::remove(report);
  return cost;
}

// Repeats the program `times` times with its collective in flight until the end.
void Overlap(tpusim::isa::PodProgram& program, int64_t times) {
  using namespace tpusim::isa;  // NOLINT: the instruction set
  for (SharedBody& body : program.programs) {
    Body before, repeated, after;
    std::vector<Instruction> joins;
    const std::function<void(const Body&)> sort = [&](const Body& part) {
      for (const Instruction& instruction : part) {
        const InstructionKind& kind = instruction.kind;
        if (const auto* call = std::get_if<Call>(&kind)) {
          sort(*call->body);
        } else if (std::holds_alternative<Alloc>(kind)) {
          before.push_back(instruction);
        } else if (std::holds_alternative<Free>(kind)) {
          after.push_back(instruction);
        } else {
          (std::holds_alternative<Done>(kind) ? joins : repeated).push_back(instruction);
        }
      }
    };
    sort(*body);
    repeated.insert(repeated.end(), joins.begin(), joins.end());
    before.push_back({Loop{times, std::make_shared<const Body>(std::move(repeated))}});
    before.insert(before.end(), after.begin(), after.end());
    body = std::make_shared<const Body>(std::move(before));
  }
}

// The simulation alone, in a child: a process can simulate once.
Cost Simulation(const std::string& detail, int64_t times, int repeats) {
  tpusim::tools::Prepared prepared =
      OrDie(tpusim::tools::Prepare(File("all_reduce_beside_kernel_64"), "", {}, {}));
  Overlap(prepared.compiled.program, times);
  tpusim::tools::MachineFlags flags;
  flags.fold = "off";
  flags.detail = detail;
  flags.slow = {"chip=3:0.8"};
  Cost cost;
  for (int i = 0; i < repeats; ++i) {
    const auto results = tpusim::tools::InChildren(
        {[&]() -> absl::StatusOr<std::string> {
          struct rusage before, after;
          getrusage(RUSAGE_SELF, &before);
          ASSIGN_OR_RETURN(const tpusim::tools::Simulated simulated,
                           tpusim::tools::Simulate(prepared, flags, {}));
          getrusage(RUSAGE_SELF, &after);
          return nlohmann::json{simulated.seconds,
                                ProcessorSeconds(after) - ProcessorSeconds(before), after.ru_maxrss,
                                simulated.timeline.events}
              .dump();
        }},
        1);
    const nlohmann::json result = nlohmann::json::parse(OrDie(results[0]));
    cost.seconds = std::min(cost.seconds, result[0].get<double>());
    cost.processor = std::min(cost.processor, result[1].get<double>());
    cost.peak_kib = std::max(cost.peak_kib, result[2].get<int64_t>());
    cost.events = result[3].get<int64_t>();
  }
  return cost;
}

}  // namespace

int main(int argc, char** argv) {
  const int repeats = argc > 1 ? std::max(1, std::atoi(argv[1])) : 5;
  fmt::print("{:<48}{:>8}{:>8}{:>9}{:>10}{:>8}\n", "", "ms", "cpu ms", "peak MB", "events",
             "M/cpu s");
  Print("all-reduce of 64 MiB, v5p-16x16x16", Process("all_reduce_4096", repeats));
  Print("  with a slow chip", Process("all_reduce_4096", repeats, {"--slow", "chip=100:0.8"}));
  Print("  with a slow link", Process("all_reduce_4096", repeats, {"--link", "100:x+=0.5"}));
  Print("64 chips unfolded, kernel beside, one straggler", Simulation("kernel", 20, repeats));
  Print("  with every kernel step", Simulation("tile", 20, repeats));
  // Events by kind: little but steps of kernels, on the devices of 16 classes; little but transfers
  // over links, on hundreds of links that differ.
  Print("kernel steps: decoder, v5p-4x4x4, every step",
        Process("decoder_fsdp_tp_64", 1, {"--detail", "tile", "--fold", "on"}));
  Print("flows: all-reduce with a slow link, every step",
        Process("all_reduce_4096", repeats, {"--link", "100:x+=0.5", "--detail", "tile"}));
  Print("8-layer MLP train step, v5e-16x16", Process("mlp_train_256", repeats));
  const Cost few = Process("mlp_train_64", repeats);
  Print("8-layer MLP train step, v7x-4x4x4", few);
  const Cost many = Process("mlp_train_9216", repeats);
  Print("8-layer MLP train step, v7x-16x24x24", many);
  fmt::print("{:<48}{:>8.2f}{:>8.2f}\n", "  9,216 chips to 64, ratio", many.seconds / few.seconds,
             many.processor / few.processor);
  return 0;
}
