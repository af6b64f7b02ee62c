// Statements about a program to the compiler, beside the program and the slice.
#ifndef TPUSIM_WORKLOADS_COMPILER_COMPILE_OPTIONS_H_
#define TPUSIM_WORKLOADS_COMPILER_COMPILE_OPTIONS_H_

#include <string>
#include <vector>

#include "workloads/collectives/collective.h"
#include "workloads/compiler/trip_counts.h"
#include "workloads/hlo/io/printer.h"
#include "workloads/passes/pipeline/pipeline.h"
#include "workloads/passes/pipeline/statements.h"
#include "workloads/remat/policies.h"
#include "workloads/sharding/types/sharding.h"
#include "workloads/sharding/stated/stated_constraints.h"

namespace tpusim::compiler {

struct CompileOptions {
  // --trip-count LOOP=N.
  TripCountOverrides trip_counts;
  // --branch, --kernel-cost, --ragged, --donate. Memories of arguments and the number of
  // partitions are the workload's.
  passes::Statements stated;
  // --mesh, --shard ARGUMENT=SHARDING: what the program is taken to say of its mesh and arguments.
  std::vector<sharding::MeshAxis> mesh;
  std::vector<sharding::StatedConstraint> arguments;
  // --constrain VALUE=SHARDING: constraints that the program is taken to have besides.
  std::vector<sharding::StatedConstraint> constraints;
  // --donate-argument, --keep-argument: which arguments lend results their buffers, and which do
  // not.
  std::vector<std::string> donated, kept;
  // --remat NAME=POLICY: what the backward pass is taken to compute again.
  std::vector<remat::StatedPolicy> remat;
  // --device-order: "" = the rule, "ids" = partition i on device i, or an
  // explicit list of device ids.
  std::string device_order;
  // --algorithm [KIND=]NAME of collectives.
  collectives::AlgorithmOverrides algorithms;
  // --passes: the passes to run, as passes::ParsePipeline reads them.
  std::string passes;
  // --no-verify-passes: the module is not verified after every pass.
  bool verify_passes = true;
  hlo::PrintOptions print;  // of dumps
  // --dump-after PASS: text of the module after each named pass.
  std::vector<std::string> dump_after;
  // --explain PASS: what each named pass says of its decisions.
  std::vector<std::string> explain;
  passes::PassWatch* pass_watch = nullptr;  // null: nobody hears of passes
  // Whether it is asked which lines of the program operations come from.
  bool op_places = false;
};

}  // namespace tpusim::compiler

#endif  // TPUSIM_WORKLOADS_COMPILER_COMPILE_OPTIONS_H_
