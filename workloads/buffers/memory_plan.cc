#include "workloads/buffers/memory_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "configs/memory.h"
#include "workloads/buffers/live_bytes.h"

namespace tpusim::buffers {
namespace {

void AddPeaks(MemoryPlan& plan) {
  plan.peaks[hlo::kHbmSpace] = Bytes(0);
  for (const hlo::LiveBuffer& b : plan.buffers) plan.peaks[b.space] = Bytes(0);
  for (auto& [space, peak] : plan.peaks) {
    const std::vector<HeapBuffer> lives = plan.LivesIn(space);
    const std::vector<Bytes> live = LiveAt(lives, std::ssize(plan.moments));
    const auto most = std::max_element(live.begin(), live.end());
    peak = *most;
    if (space != hlo::kHbmSpace) continue;
    const int64_t moment = most - live.begin();
    plan.peak_at = plan.moments[moment];
    for (size_t n = 0; n < lives.size(); ++n) {
      if (lives[n].begin > moment || moment >= lives[n].end) continue;
      plan.live_at_peak.push_back(static_cast<int32_t>(n));
    }
  }
  std::stable_sort(plan.live_at_peak.begin(), plan.live_at_peak.end(), [&](int32_t a, int32_t b) {
    return plan.buffers[a].bytes > plan.buffers[b].bytes;
  });
}

// The peak of HBM is what the arguments take and how high the heap grows.
void PlaceInHbm(MemoryPlan& plan, const target::Target& target) {
  Bytes& peak = plan.peaks[hlo::kHbmSpace];
  HeapProblem problem{plan.LivesIn(hlo::kHbmSpace), target.policy().heap_alignment_bytes,
                      target.Usable(hlo::kHbmSpace)};
  Bytes arguments(0);
  for (const int32_t n : plan.arguments) arguments += std::exchange(problem.buffers[n], {}).bytes;
  problem.room -= arguments;
  Heap heap = Solve(problem);
  plan.fragmentation = arguments + heap.height - peak;
  peak += plan.fragmentation;
  plan.offsets = std::move(heap.offsets);
}

}  // namespace

std::vector<HeapBuffer> MemoryPlan::LivesIn(int64_t space) const {
  std::vector<HeapBuffer> lives(buffers.size());
  for (size_t n = 0; n < buffers.size(); ++n) {
    const hlo::LiveBuffer& b = buffers[n];
    if (b.space != space || b.inside >= 0) continue;
    lives[n] = {b.begin + 1, b.argument ? std::ssize(moments) : b.end + 1, b.bytes};
  }
  return lives;
}

MemoryPlan PlanBuffers(const hlo::Module& module, hlo::ModuleAliases& aliases,
                       const target::Target& target) {
  const auto size = [&](const hlo::Shape& array) {
    const configs::Memory& space =
        configs::MemoryOfNumber(array.IsArray() ? array.layout.memory_space : hlo::kHbmSpace);
    return hlo::BufferSize{space.number, space.planned ? target.PaddedSize(array) : Bytes(0)};
  };
  MemoryPlan plan;
  static_cast<hlo::LiveIntervals&>(plan) = hlo::LiveIntervalsOf(module, aliases, size);
  AddPeaks(plan);
  PlaceInHbm(plan, target);
  return plan;
}

MemoryPlan PlanBuffers(const hlo::Module& module, const target::Target& target) {
  hlo::ModuleAliases aliases;
  return PlanBuffers(module, aliases, target);
}

std::string ToString(const MemoryPlan& plan) {
  const auto moment = [&](int64_t at) -> std::string {
    if (at >= std::ssize(plan.moments)) return "end";
    const hlo::Instruction* const begins = at < 0 ? nullptr : plan.moments[at];
    return begins == nullptr ? "begin" : begins->name();
  };
  std::string text;
  for (const auto& [space, peak] : plan.peaks) {
    text += fmt::format("peak of S({}): {} bytes", space, peak.value());
    if (space == hlo::kHbmSpace) {
      text += fmt::format(", {} of them holes", plan.fragmentation.value());
      if (plan.peak_at != nullptr) text += fmt::format(", at {}", plan.peak_at->name());
    }
    text += '\n';
  }
  text += "\nbuffer  space        offset         bytes  array: from .. until\n";
  for (size_t n = 0; n < plan.buffers.size(); ++n) {
    const hlo::LiveBuffer& b = plan.buffers[n];
    // Arguments, and what has no place of its own, have no offset.
    const bool placed = b.space == hlo::kHbmSpace && !b.argument && b.inside < 0;
    text += fmt::format("{:<8}{:>5}{:>14}{:>14}  {}", n, b.space,
                        placed ? std::to_string(plan.offsets[n].value()) : "-", b.bytes.value(),
                        b.made_by->name());
    if (b.made_by->shape().IsTuple()) text += fmt::format("{{{}}}", b.leaf);
    if (b.inside >= 0) {
      text += fmt::format(": in buffer {}\n", b.inside);
    } else if (b.argument) {
      text += ": argument\n";
    } else {
      text += fmt::format(": {} .. {}\n", moment(b.begin + 1), moment(b.end));
    }
  }
  return text;
}

}  // namespace tpusim::buffers
