// From a scheduled per-device module to instruction streams.
//
// The main stream follows the schedule: kernels for fusions, scalar blocks for
// index arithmetic, loops for whiles. A collective becomes a body on a
// collective stream, forked where it starts and joined where its result is
// needed; a synchronous one is joined at once. Everything is labelled with the HLO
// operation it comes from.
//
// Devices differ only in the roles they play in collectives (the end of a line
// does less than its middle) and in the branches that they take, so one program
// is made per distinct combination of these.
//
// The room answers which instructions every stream of every device executes; `Lower` is its entry
// point. A whole program for each distinct role was tried and rejected: what all devices run alike
// is lowered once, as a stretch that the programs call, in about half of the memory.
#ifndef TPUSIM_WORKLOADS_LOWERING_LOWER_H_
#define TPUSIM_WORKLOADS_LOWERING_LOWER_H_

#include <cstdint>
#include <functional>

#include "absl/status/statusor.h"
#include "models/isa/program.h"
#include "workloads/buffers/memory_plan.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/kernels/tiling/kernel_library.h"
#include "workloads/lowering/collective_library.h"
#include "workloads/target/target.h"

namespace tpusim::lowering {

struct LoweringInput {
  const hlo::Module* module = nullptr;  // scheduled
  const buffers::MemoryPlan* memory = nullptr;
  kernels::KernelLibrary* kernels = nullptr;
  CollectiveLibrary* collectives = nullptr;  // knows where the partitions run
  std::function<absl::StatusOr<int64_t>(const hlo::Instruction& loop)> trips;
};

// Fills programs, routes, flags, tokens and the program's ops, collectives,
// buffers and totals; the caller adds what it knows itself (names, warnings).
absl::StatusOr<isa::PodProgram> Lower(const LoweringInput& input, const target::Target& target);

}  // namespace tpusim::lowering

#endif  // TPUSIM_WORKLOADS_LOWERING_LOWER_H_
