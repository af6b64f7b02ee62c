#include "workloads/buffers/vmem_peak.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <unordered_map>
#include <utility>
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

// Moments at which nothing is in a buffer although it lives: what a loop carries has been read for
// the last time in this pass, and what the next pass reads is not made yet.
struct Gap {
  size_t buffer = 0;
  int64_t begin = 0, end = 0;
};

// Returns the gaps of buffers that take on one new value in a computation that was given them.
std::vector<Gap> GapsOf(const hlo::LiveIntervals& lives) {
  struct OrderPosition {
    const hlo::Computation* computation;
    int64_t position;
  };
  std::unordered_map<const Instruction*, OrderPosition> place_of;  // looked up, never iterated
  for (const auto& [computation, of] : lives.computations) {
    const std::vector<Instruction*> order = computation->Order();
    for (size_t p = 0; p < order.size(); ++p) {
      place_of[order[p]] = {computation, static_cast<int64_t>(p)};
    }
  }
  // By buffer and the computation that takes it over.
  using Key = std::pair<size_t, const hlo::Computation*>;
  struct Pass {
    int64_t values = 0, made = 0, last_read = -1;
  };
  std::map<Key, Pass> passes;
  for (const hlo::LiveBuffer& b : lives.buffers) {
    if (b.inside < 0) continue;
    const OrderPosition at = place_of.at(b.made_by);
    const auto buffer = static_cast<size_t>(b.inside);
    if (lives.buffers[buffer].made_by->parent() == at.computation) continue;
    Pass& pass = passes[{buffer, at.computation}];
    ++pass.values;
    pass.made = at.position;
  }
  for (const hlo::BufferUse& use : lives.uses) {
    const OrderPosition at = place_of.at(use.by);
    const auto pass = passes.find({static_cast<size_t>(use.buffer), at.computation});
    if (pass == passes.end() || at.position > pass->second.made) continue;
    const Instruction* done =
        hlo::IsAsyncStart(use.by->opcode()) ? hlo::DoneOf(*use.by) : nullptr;
    const int64_t read = done == nullptr ? at.position : place_of.at(done).position;
    pass->second.last_read = std::max(pass->second.last_read, read);
  }
  std::vector<Gap> gaps;
  for (const auto& [key, pass] : passes) {
    if (pass.values != 1 || pass.last_read + 1 >= pass.made) continue;
    const std::vector<int64_t>& moments = lives.computations.at(key.second).moments;
    gaps.push_back({key.first, moments[pass.last_read + 1], moments[pass.made]});
  }
  return gaps;
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
    const int64_t end = b.argument ? moments : b.end + 1;
    int64_t begin = std::min(b.begin + 1, end);
    // Pieces that were copied to lie side by side are one array where they are (ConcatBitcast): it
    // is there when all of them have gone.
    if (hlo::IsCallOf(*b.made_by, hlo::kConcatBitcast)) {
      while (begin < end && lives.moments[begin] == b.made_by) ++begin;
    }
    buffers[n] = {begin, end, b.bytes};
  }
  Bytes throughout(0);
  std::vector<isa::LiveArray> there;
  for (const Instruction* i : module.entry()->instructions()) {
    if (!IsThereBefore(*i)) continue;
    there.push_back(Described(*i, i->shape(), target.PaddedSize(i->shape())));
    throughout += there.back().bytes;
  }

  const std::vector<Gap> gaps = GapsOf(lives);
  std::vector<HeapBuffer> held = buffers;
  for (const Gap& gap : gaps) {
    const HeapBuffer& b = buffers[gap.buffer];
    if (gap.begin < b.begin || gap.end > b.end || b.bytes == Bytes(0)) continue;
    held.push_back({gap.begin, gap.end, Bytes(0) - b.bytes});
  }
  const std::vector<Bytes> live = LiveAt(held, moments);
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
    const bool empty = std::ranges::any_of(gaps, [&](const Gap& gap) {
      return gap.buffer == n && gap.begin <= moment && moment < gap.end;
    });
    if (empty) continue;
    const hlo::LiveBuffer& b = lives.buffers[n];
    peak.arrays.push_back(Described(*b.made_by, *b.array, b.bytes));
  }
  std::ranges::stable_sort(peak.arrays, std::greater<>(), &isa::LiveArray::bytes);
  return peak;
}

}  // namespace tpusim::buffers
