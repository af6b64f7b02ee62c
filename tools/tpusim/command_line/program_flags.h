// Options of the command line about a program and the machine that runs it.
#ifndef TPUSIM_TOOLS_TPUSIM_COMMAND_LINE_PROGRAM_FLAGS_H_
#define TPUSIM_TOOLS_TPUSIM_COMMAND_LINE_PROGRAM_FLAGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "configs/digest.h"
#include "sim/simulate.h"
#include "tools/tpusim/command_line/command.h"
#include "workloads/compiler/compile_options.h"
#include "workloads/cost/stated_costs.h"
#include "workloads/passes/pipeline/statements.h"

namespace tpusim::tools {

// Registers the one workload and the one slice of a subcommand; the strings must
// live as long as the parser.
void AddWorkloadFlags(CLI::App& app, std::string& workload, std::string& config);

// Options about one program on one slice.
struct ProgramFlags {
  std::vector<std::string> overrides;    // --set NAME=VALUE
  bool recompile = false;                // --recompile
  std::string compiler;                  // --compiler
  std::string xla_flags;                 // --xla-flags
  std::vector<std::string> trip_counts;  // --trip-count LOOP=N, checked by the parser
  std::vector<std::string> branches;     // --branch NAME=k, checked too
  std::string kernel_time = "machine";
  std::vector<std::string> kernel_costs;  // --kernel-cost NAME=COST, checked too
  std::vector<std::string> costs;         // --cost NAME=TIME, checked too
  std::vector<std::string> ragged;        // --ragged NAME=SIZES, checked too
  passes::Routing routing;                // --routing
  std::string mesh;                       // --mesh, checked too
  std::vector<std::string> arguments;     // --shard ARGUMENT=SHARDING, checked too
  std::vector<std::string> constraints;   // --constrain VALUE=SHARDING, checked too
  std::vector<std::string> remat;         // --remat NAME=POLICY, checked too
  std::vector<std::string> donated;       // --donate-argument ARGUMENT
  std::vector<std::string> kept;          // --keep-argument ARGUMENT
  std::string device_order;               // --device-order
  std::vector<std::string> algorithms;    // --algorithm [KIND=]NAME, checked too
  bool donate = false;                    // --donate
  std::string passes;                     // --passes, checked too
  std::vector<std::string> explain;       // --explain
  bool verify_passes = true;              // --no-verify-passes
  bool pass_timings = false;              // --pass-timings
  bool quiet = false;
  bool verbose = false;
};
// Registers those of the compiler's passes; `flags` must live as long as the parser.
void AddPassFlags(CLI::App& app, ProgramFlags& flags);
// Registers --explain.
void AddExplainFlag(CLI::App& app, ProgramFlags& flags);
// Registers --cost, which `opt` alone has: it is a question to a pass, no part of a program.
void AddCostFlag(CLI::App& app, ProgramFlags& flags);
// Registers --device-order and --algorithm.
void AddPlacementFlags(CLI::App& app, ProgramFlags& flags);
// Registers all but --explain and --cost.
void AddProgramFlags(CLI::App& app, ProgramFlags& flags);

// Options about the machine that runs it.
struct MachineFlags {
  std::string fold = "auto";       // --fold
  std::string detail = "kernel";   // --detail
  std::vector<std::string> slow;   // --slow chip=3:0.8
  std::vector<std::string> links;  // --link 3:x+=0.5
  int64_t max_events = sim::kDefaultMaxEvents;
  int64_t exact_under = sim::kDefaultExactUnder;
};
void AddMachineFlags(CLI::App& app, MachineFlags& flags);

// Adds what is equal for flags that make the same program, or the same machine, of the same file.
// All members count but those that say what is shown: one that is added does not compile until it
// is taken in.
void AddTo(configs::Digest& digest, const ProgramFlags& flags);
void AddTo(configs::Digest& digest, const MachineFlags& flags);

// The flags as the compiler takes them.
compiler::CompileOptions CompileOptionsOf(const ProgramFlags& flags);
std::vector<cost::StatedCost> StatedCostsOf(const ProgramFlags& flags);

}  // namespace tpusim::tools

#endif  // TPUSIM_TOOLS_TPUSIM_COMMAND_LINE_PROGRAM_FLAGS_H_
