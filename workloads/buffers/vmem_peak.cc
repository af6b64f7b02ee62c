#include "workloads/buffers/vmem_peak.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "configs/memory.h"
#include "workloads/buffers/heap.h"
#include "workloads/buffers/live_bytes.h"
#include "workloads/hlo/analysis/alias.h"
#include "workloads/hlo/analysis/async.h"
#include "workloads/hlo/analysis/call_graph.h"
#include "workloads/hlo/analysis/live_intervals.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"

namespace tpusim::buffers {
namespace {

using hlo::Instruction;
using hlo::Opcode;

bool InVmem(const hlo::Shape& shape) {
  return shape.IsArray() &&
         shape.layout.memory_space == configs::MemoryOf(configs::MemorySpace::kVmem).number;
}

// The step before has left an array of HBM in VMEM: no name of an array there, but a copy of it
// (cross-program prefetch, passes/compiled/begin_prefetched.cc).
bool IsThereBefore(const Instruction& i) {
  return i.opcode() == Opcode::kBitcast && InVmem(i.shape()) && !InVmem(i.operand(0)->shape());
}

// A copy that nothing in this step reads: it is for the next one, and goes where that of the step
// before has been.
bool IsForNextStep(const Instruction& i) {
  if (i.opcode() != Opcode::kCopyStart) return false;
  const Instruction* done = hlo::DoneOf(i);
  return done != nullptr && done->users().empty() && !done->IsRoot();
}

const char* OwnerOf(const Instruction& made_by) {
  if (IsThereBefore(made_by)) return "prefetched by the step before";
  return hlo::IsAsyncStart(made_by.opcode()) ? "copies and transfers" : "made by kernels";
}

isa::LiveArray Described(const Instruction& made_by, const hlo::Shape& array, Bytes bytes) {
  return {made_by.name(),
          OwnerOf(made_by),
          made_by.op_name(),
          made_by.SourceLocation(),
          array.ToString(/*with_layout=*/true),
          bytes,
          array.ByteSize()};
}

}  // namespace

isa::VmemAtPeak MostOfVmem(const hlo::Module& module, const target::Target& target,
                           absl::FunctionRef<Bytes(const Instruction&)> windows_of) {
  const configs::Memory& vmem = configs::MemoryOf(configs::MemorySpace::kVmem);
  hlo::ModuleAliases aliases;
  const hlo::LiveIntervals lives =
      hlo::LiveIntervalsOf(module, aliases, [&](const hlo::Shape& array) {
        return hlo::BufferSize{vmem.number, InVmem(array) ? target.PaddedSize(array) : Bytes(0)};
      });
  const int64_t moments = std::ssize(lives.moments);
  std::vector<HeapBuffer> buffers(lives.buffers.size());
  for (size_t n = 0; n < lives.buffers.size(); ++n) {
    const hlo::LiveBuffer& b = lives.buffers[n];
    if (b.inside >= 0 || b.bytes == Bytes(0) || IsForNextStep(*b.made_by)) continue;
    // Pieces that were copied to lie side by side are one array where they are (ConcatBitcast).
    const bool joins = hlo::IsCallOf(*b.made_by, hlo::kConcatBitcast);
    const int64_t end = b.argument ? moments : b.end + 1;
    buffers[n] = {std::min(b.begin + (joins ? 2 : 1), end), end, b.bytes};
  }
  Bytes throughout(0);
  std::vector<isa::LiveArray> there;
  for (const Instruction* i : module.entry()->instructions()) {
    if (!IsThereBefore(*i)) continue;
    there.push_back(Described(*i, i->shape(), target.PaddedSize(i->shape())));
    throughout += there.back().bytes;
  }

  const std::vector<Bytes> live = LiveAt(buffers, moments);
  const auto most = std::max_element(live.begin(), live.end());
  int64_t moment = most - live.begin();
  isa::VmemAtPeak peak;
  peak.capacity = vmem.capacity(target.chip());
  Bytes most_used = *most;
  if (lives.moments[moment] != nullptr) peak.operation = lives.moments[moment]->name();
  for (const hlo::Computation* computation : hlo::ControlComputations(module)) {
    const auto at = lives.computations.find(computation);
    if (at == lives.computations.end()) continue;
    const std::vector<Instruction*> order = computation->Order();
    for (size_t p = 0; p < order.size(); ++p) {
      const Bytes windows = windows_of(*order[p]);
      const Bytes used = live[at->second.moments[p]] + windows;
      if (windows == Bytes(0) || used <= most_used) continue;
      most_used = used;
      moment = at->second.moments[p];
      peak.windows = windows;
      peak.operation = order[p]->name();
    }
  }
  peak.bytes = most_used + throughout;
  peak.arrays = std::move(there);
  for (size_t n = 0; n < buffers.size(); ++n) {
    if (buffers[n].begin > moment || moment >= buffers[n].end) continue;
    const hlo::LiveBuffer& b = lives.buffers[n];
    peak.arrays.push_back(Described(*b.made_by, *b.array, b.bytes));
  }
  std::ranges::stable_sort(peak.arrays, std::greater<>(), &isa::LiveArray::bytes);
  return peak;
}

}  // namespace tpusim::buffers
