#include "tests/sim/kernels_of_examples.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <unordered_set>

#include "configs/config.h"
#include "configs/status_macros.h"
#include "models/timing/kernel_time.h"
#include "tests/sim/pod_testing.h"
#include "tests/workloads/examples.h"
#include "workloads/compiler/session.h"
#include "workloads/cost/candidate.h"
#include "workloads/hlo/analysis/call_graph.h"
#include "workloads/hlo/analysis/execution.h"
#include "workloads/hlo/io/import.h"
#include "workloads/kernels/tiling/kernel_library.h"
#include "workloads/target/target.h"

namespace tpusim::testing {
namespace {

using hlo::Instruction;
using hlo::Opcode;

// Puts the parameters of a fusion's computation, and its results, where operands and results of the
// fusion are. Returns the computation.
const hlo::Computation& Placed(const Instruction& fusion) {
  hlo::Computation& inside = *fusion.called()[0];
  for (Instruction* parameter : inside.parameters()) {
    const auto number = static_cast<size_t>(parameter->attrs().parameter_number());
    parameter->set_shape(fusion.operand(number)->shape());
  }
  const std::vector<const hlo::Shape*> leaves = hlo::Leaves(fusion.shape());
  Instruction* root = inside.root();
  const bool several = root->opcode() == Opcode::kTuple;
  for (size_t n = 0; several && n < leaves.size() && n < root->operands().size(); ++n) {
    root->operand(n)->set_shape(*leaves[n]);
  }
  if (!several) root->set_shape(*leaves[0]);
  return inside;
}

// A fusion as the candidate that it was: the graph of what it computes, with operands and
// results where they are. Nothing if fusion would not have thought of it.
struct FormerCandidate {
  explicit FormerCandidate(const Instruction& fusion) : graph(Placed(fusion)) {
    const Instruction& root = graph.At(graph.root);
    roots = root.opcode() == Opcode::kTuple ? graph.operands[graph.root] : std::vector{graph.root};
    for (int i = 0; i < graph.size(); ++i) {
      const Instruction& inner = graph.At(i);
      if (inner.opcode() == Opcode::kParameter) continue;
      if (graph.parts[i] > cost::Part::kFree) {
        members.push_back(i);
      } else if (graph.Is(i, cost::Part::kNone) && i != graph.root) {
        possible = false;
      }
    }
    const std::vector<const hlo::Shape*> leaves = hlo::Leaves(fusion.shape());
    possible = possible && !members.empty() && leaves.size() == roots.size() &&
               std::is_sorted(roots.begin(), roots.end()) &&
               std::adjacent_find(roots.begin(), roots.end()) == roots.end();
    for (size_t n = 0; possible && n < roots.size(); ++n) {
      possible = std::binary_search(members.begin(), members.end(), roots[n]) &&
                 leaves[n]->IsArray() && graph.At(roots[n]).shape().IsArray();
    }
    possible = possible && !cost::IsLone(graph, {members, roots});
  }

  const cost::KernelGraph graph;
  std::vector<int> members, roots;
  bool possible = true;
};

}  // namespace

std::vector<ChipSlices> SlicesOfChips() {
  return {{"v2-4x4", "v2-1x1"},     {"v3-4x4", "v3-1x1"},      {"v4-2x2x4", "v4-1x1x1"},
          {"v4i-2x2", "v4i-1x1"},   {"v5e-16x16", "v5e-1x1"},  {"v5p-4x4x4", "v5p-1x1x1"},
          {"v6e-16x16", "v6e-1x1"}, {"v7x-4x4x4", "v7x-1x1x1"}};
}

KernelsCompared CompareKernels(const ChipSlices& slices, size_t first, size_t step) {
  KernelsCompared compared;
  const configs::Config slice = configs::LoadConfig(slices.slice, {}).value();
  const configs::Config one = configs::LoadConfig(slices.one, {}).value();
  const target::Target target(slice);
  kernels::KernelLibrary library(target);
  std::unordered_set<std::string> known;
  // The other devices of a chip are idle.
  isa::PodProgram program =
      MakeProgram(std::vector<isa::SharedBody>(static_cast<size_t>(one.devices())));
  isa::Body body;
  std::vector<Picoseconds> times;
  std::vector<std::string> names;
  const std::vector<std::string> files = workloads::Examples();
  for (size_t f = first; f < files.size(); f += step) {
    absl::StatusOr<hlo::ImportedWorkload> imported = hlo::ImportFile(files[f]);
    EXPECT_TRUE(imported.ok()) << files[f];
    compiler::CompileOptions options;
    options.trip_counts = {{"*", 2}};
    const auto compiled = compiler::Compile(*std::move(imported), slice, options,
                                            compiler::Stage::kSchedule);
    // Some need more memory, or devices, than the slice has.
    if (!compiled.ok()) continue;
    ++compared.programs;
    for (const hlo::Computation* computation : hlo::ControlComputations(*compiled->module)) {
      for (const Instruction* i : computation->instructions()) {
        if (hlo::ExecutionOf(*i).value() != hlo::Execution::kKernel) continue;
        if (!known.insert(kernels::CanonicalForm(*i)).second) continue;
        const std::string name = files[f].substr(files[f].rfind('/') + 1) + " " + i->name();
        const kernels::TimedKernel timed = library.Build(*i).value();
        ++compared.kernels;
        names.push_back(name);
        times.push_back(timed.time);
        const int32_t op = AddOp(program, name);
        body.insert(body.end(), {{isa::Label{op, true}}, {timed.kernel}, {isa::Label{op, false}}});
        EXPECT_EQ(timing::KernelTime(slice.chip, timed.kernel), timed.time) << name;
        EXPECT_LE(timing::KernelTimeBound(slice.chip, timed.kernel), timed.time) << name;
        if (i->opcode() != Opcode::kFusion) continue;
        const FormerCandidate former(*i);
        if (!former.possible) continue;
        ++compared.candidates;
        const auto costs = cost::CostsOfCandidates(former.graph, target);
        EXPECT_LE(costs->BoundOf({former.members, former.roots}).time, timed.time) << name;
      }
    }
  }
  program.programs[0] = std::make_shared<const isa::Body>(std::move(body));
  const sim::Timeline timeline = MustSimulate(one, program);
  EXPECT_EQ(timeline.ops.size(), times.size());
  for (size_t n = 0; n < std::min(timeline.ops.size(), times.size()); ++n) {
    EXPECT_EQ(timeline.ops[n].total, times[n]) << names[n];
  }
  return compared;
}

}  // namespace tpusim::testing
