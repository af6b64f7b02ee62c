// The front half of the compiler on generated programs: import (read, parse,
// build, verify), propagation of shardings, partitioning.
//
//   build/front_end_benchmark [--program flat] [--size 100000] [--repeat 3]
//
// Time is CPU time (user and system) of the fastest of the repeats. Microseconds
// per instruction are the figure to look at: they must not grow with the size.
// Every run is a process of its own, so that the peak memory is its own too; the
// program comes from a file that another process has written.
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "configs/status_macros.h"
#include "tests/workloads/sharded_program.h"
#include "workloads/hlo/analysis/verify.h"
#include "workloads/hlo/io/import.h"
#include "workloads/hlo/io/printer.h"
#include "workloads/hlo/io/wire.h"
#include "workloads/sharding/propagation/propagate.h"
#include "workloads/spmd/partition.h"

namespace {

using tpusim::workloads::ProgramForm;
using tpusim::workloads::ShardedProgram;

struct Program {
  const char* name;
  ProgramForm form;
};
constexpr Program kPrograms[] = {{"flat", ProgramForm::kFlat},
                                 {"calls", ProgramForm::kCalls},
                                 {"reshards", ProgramForm::kReshards}};
constexpr int64_t kSizes[] = {1000, 10000, 100000};

// Figures of a run, sent to the process that started it.
struct Figures {
  int64_t instructions = 0, partitioned = 0;
  double import = 0, propagate = 0, partition = 0;
  double Total() const { return import + propagate + partition; }
};

template <typename T>
T OrDie(absl::StatusOr<T> result) {
  TPUSIM_CHECK(result.ok(), tpusim::Message(result.status()));
  return *std::move(result);
}

double CpuSeconds() {
  timespec now;
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// The time since it was asked last.
class Clock {
 public:
  double Lap() {
    const double before = std::exchange(last_, CpuSeconds());
    return last_ - before;
  }

 private:
  double last_ = CpuSeconds();
};

int64_t Instructions(const tpusim::hlo::Module& module) {
  int64_t count = 0;
  for (const auto* computation : module.computations()) {
    count += static_cast<int64_t>(computation->size());
  }
  return count;
}

Figures Measure(const std::string& file) {
  Figures figures;
  Clock clock;
  auto imported = OrDie(tpusim::hlo::ImportFile(file));
  figures.import = clock.Lap();
  figures.instructions = Instructions(*imported.module);
  clock.Lap();
  const auto sharded =
      OrDie(tpusim::sharding::ShardModule(std::move(imported.module), ShardedProgram::kPartitions));
  figures.propagate = clock.Lap();
  const auto partitioned = OrDie(tpusim::spmd::Partition(sharded, {}));
  figures.partition = clock.Lap();
  figures.partitioned = Instructions(*partitioned.module);
  return figures;
}

// Runs `work` in a child, which leaves without destructors; its peak memory.
int64_t PeakRssOf(const std::function<void()>& work) {
  std::fflush(stdout);
  const pid_t child = ::fork();
  TPUSIM_CHECK(child >= 0, "cannot start a process");
  if (child == 0) {
    work();
    ::_exit(0);
  }
  int status = 0;
  struct rusage usage;
  TPUSIM_CHECK(::wait4(child, &status, 0, &usage) == child, "lost a process");
  TPUSIM_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "a run failed");
  return int64_t{1024} * usage.ru_maxrss;
}

Figures RunOnce(const std::string& file, int64_t* peak) {
  int ends[2];
  TPUSIM_CHECK(::pipe(ends) == 0, "cannot make a pipe");
  Figures figures;
  *peak = PeakRssOf([&] {
    const Figures measured = Measure(file);
    TPUSIM_CHECK(::write(ends[1], &measured, sizeof(measured)) == sizeof(measured), "pipe");
  });
  TPUSIM_CHECK(::read(ends[0], &figures, sizeof(figures)) == sizeof(figures), "pipe");
  ::close(ends[0]);
  ::close(ends[1]);
  return figures;
}

void Run(const Program& program, int64_t size, int repeats) {
  const std::string file =
      (std::filesystem::temp_directory_path() / fmt::format("front_end_{}.pb", ::getpid()))
          .string();
  PeakRssOf([&] {
    std::ofstream out(file, std::ios::binary);
    TPUSIM_CHECK(
        tpusim::hlo::ToProto(*ShardedProgram::Make(size, program.form)).SerializeToOstream(&out),
        "cannot write " + file);
  });
  Figures best;
  int64_t peak = 0;
  for (int n = 0; n < repeats; ++n) {
    int64_t rss = 0;
    const Figures figures = RunOnce(file, &rss);
    if (n == 0 || figures.Total() < best.Total()) best = figures;
    peak = std::max(peak, rss);
  }
  std::filesystem::remove(file);
  const auto each = [&](double seconds) {
    return fmt::format("{:8.3f} {:6.2f}", seconds,
                       seconds * 1e6 / static_cast<double>(best.instructions));
  };
  fmt::print("{:9} {:12} {:11}  {}  {}  {}  {} {:9.1f}\n", program.name, best.instructions,
             best.partitioned, each(best.import), each(best.propagate), each(best.partition),
             each(best.Total()), static_cast<double>(peak) * 1e-6);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Time of import, propagation and partitioning per instruction");
  std::string only;
  int64_t size = 0;
  int repeats = 3;
  app.add_option("--program", only, "flat, calls or reshards; all if left out")
      ->check(CLI::IsMember({"flat", "calls", "reshards"}));
  app.add_option("--size", size, "Instructions; 1,000, 10,000 and 100,000 if left out")
      ->check(CLI::PositiveNumber);
  app.add_option("--repeat", repeats, "Runs, the fastest of which counts")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  // One column of seconds and one of microseconds per instruction for each stage.
  fmt::print("{:9} {:>12} {:>11}  {:>15}  {:>15}  {:>15}  {:>15} {:>9}\n", "program",
             "instructions", "partitioned", "import s  us", "propagate s  us", "partition s  us",
             "total s  us", "peak MB");
  for (const Program& program : kPrograms) {
    if (!only.empty() && only != program.name) continue;
    for (const int64_t instructions : kSizes) {
      if (size == 0) Run(program, instructions, repeats);
    }
    if (size != 0) Run(program, size, repeats);
  }
  return 0;
}
