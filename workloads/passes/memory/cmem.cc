#include "workloads/passes/memory/cmem.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <vector>

#include "configs/status_macros.h"
#include "workloads/hlo/analysis/control.h"
#include "workloads/hlo/analysis/in_place.h"
#include "workloads/hlo/ir/opcode.h"

namespace tpusim::passes {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;
using hlo::Shape;

// How often a loop body counts as run, as in the TPU compiler
// (xla_tpu_memory_space_assignment_while_execution_count).
constexpr double kLoopWeight = 5;

struct Candidate {
  Instruction* maker = nullptr;
  int64_t leaf = -1;                // element of a tuple; -1: the result itself
  std::vector<Instruction*> names;  // of the array: get-tuple-elements, bitcasts
  std::vector<const Instruction*> readers;
};

// Collects who reads `value` under any of its names. False: somebody who needs it in HBM.
bool Follow(Instruction* value, Candidate& candidate) {
  if (value->IsRoot()) return false;
  for (Instruction* user : value->users()) {
    if (user->opcode() == Opcode::kBitcast) {
      candidate.names.push_back(user);
      if (!Follow(user, candidate)) return false;
      continue;
    }
    if (!hlo::MovesThroughWindows(user->opcode()) || !hlo::InPlaceResults(*user).empty())
      return false;
    candidate.readers.push_back(user);
  }
  return true;
}

bool IsPlaceable(const Shape& shape) {
  return shape.IsArray() && !shape.IsScalar() && shape.layout.memory_space == hlo::kHbmSpace;
}

// The arrays that an instruction makes and that may be elsewhere than in HBM.
std::vector<Candidate> CandidatesOf(Instruction& i) {
  std::vector<Candidate> found;
  if (!hlo::MovesThroughWindows(i.opcode()) || i.IsRoot() || !hlo::InPlaceResults(i).empty())
    return found;
  const auto add = [&](Candidate candidate, Instruction* value) {
    if (Follow(value, candidate) && !candidate.readers.empty()) {
      found.push_back(std::move(candidate));
    }
  };
  if (!i.shape().IsTuple()) {
    if (IsPlaceable(i.shape())) add({&i, -1, {}, {}}, &i);
    return found;
  }
  std::vector<std::vector<Instruction*>> elements(i.shape().tuple.size());
  for (Instruction* user : i.users()) {
    if (user->opcode() != Opcode::kGetTupleElement) return found;
    elements[user->attrs().tuple_index()].push_back(user);
  }
  for (size_t n = 0; n < elements.size(); ++n) {
    if (elements[n].size() != 1 || !IsPlaceable(i.shape().tuple[n])) continue;
    add({&i, static_cast<int64_t>(n), {elements[n].front()}, {}}, elements[n].front());
  }
  return found;
}

// CMEM over the schedule of one computation.
struct Timeline {
  Timeline* caller = nullptr;
  size_t called_at = 0;
  double weight = 1;          // of what happens inside
  std::vector<Bytes> own;     // live at each position
  std::vector<Bytes> inside;  // most that a computation called there has live
  std::unordered_map<const Instruction*, size_t> position;

  Bytes Outside() const {
    return caller == nullptr ? Bytes(0) : caller->Outside() + caller->own[called_at];
  }
  Bytes Peak() const {
    Bytes peak(0);
    for (size_t p = 0; p < own.size(); ++p) peak = std::max(peak, own[p] + inside[p]);
    return peak;
  }
};

class Placer {
 public:
  Placer(hlo::Module& module, const target::Target& target, Bytes capacity)
      : target_(target), capacity_(capacity) {
    const std::vector<Computation*> computations = ControlComputations(module);
    timelines_.resize(computations.size());
    for (size_t c = 0; c < computations.size(); ++c) by_computation_[computations[c]] = c;
    for (size_t c = 0; c < computations.size(); ++c) {
      Timeline& timeline = timelines_[c];
      const std::vector<Instruction*> order = computations[c]->Order();
      timeline.own.assign(order.size(), Bytes(0));
      timeline.inside.assign(order.size(), Bytes(0));
      for (size_t p = 0; p < order.size(); ++p) {
        timeline.position[order[p]] = p;
        const bool loop = order[p]->opcode() == Opcode::kWhile;
        for (const Computation* called : order[p]->called()) {
          const auto inner = by_computation_.find(called);
          if (inner == by_computation_.end()) continue;
          Timeline& callee = timelines_[inner->second];
          callee.caller = &timeline;
          callee.called_at = p;
          callee.weight = timeline.weight * (loop ? kLoopWeight : 1);
        }
        for (Candidate& candidate : CandidatesOf(*order[p])) Rank(std::move(candidate), timeline);
      }
    }
  }

  // Whether anything found a place.
  bool Run() {
    bool placed = false;
    // The program's order decides between equals.
    std::stable_sort(ranked_.begin(), ranked_.end(),
                     [](const Ranked& a, const Ranked& b) { return a.gain > b.gain; });
    for (Ranked& ranked : ranked_) {
      ranked.last = ranked.first;
      for (const Instruction* reader : ranked.candidate.readers) {
        ranked.last = std::max(ranked.last, ranked.timeline->position.at(reader));
      }
      if (!Fits(ranked)) continue;
      Place(ranked);
      placed = true;
    }
    return placed;
  }

 private:
  struct Ranked {
    Candidate candidate;
    Timeline* timeline = nullptr;
    size_t first = 0, last = 0;  // positions
    Bytes bytes{0};
    double gain = 0;
  };

  void Rank(Candidate candidate, Timeline& timeline) {
    Ranked ranked;
    const Instruction& maker = *candidate.maker;
    ranked.bytes = target_.PaddedSize(candidate.leaf < 0 ? maker.shape()
                                                         : maker.shape().tuple[candidate.leaf]);
    if (ranked.bytes == Bytes(0) || ranked.bytes > capacity_) return;
    ranked.gain = timeline.weight * static_cast<double>(candidate.readers.size()) *
                  std::sqrt(static_cast<double>(ranked.bytes.value()));
    ranked.timeline = &timeline;
    ranked.first = timeline.position.at(&maker);
    // Positions of readers are known when the computation has been walked.
    ranked.candidate = std::move(candidate);
    ranked_.push_back(std::move(ranked));
  }

  bool Fits(const Ranked& ranked) const {
    const Timeline& timeline = *ranked.timeline;
    const Bytes outside = timeline.Outside();
    for (size_t p = ranked.first; p <= ranked.last; ++p) {
      if (outside + timeline.own[p] + timeline.inside[p] + ranked.bytes > capacity_) return false;
    }
    return true;
  }

  static void MoveToCmem(Instruction* i, int64_t leaf) {
    Shape shape = i->shape();
    (leaf < 0 ? shape : shape.tuple[leaf]).layout.memory_space = hlo::kCmemSpace;
    i->set_shape(std::move(shape));
  }

  static void Place(const Ranked& ranked) {
    MoveToCmem(ranked.candidate.maker, ranked.candidate.leaf);
    for (Instruction* name : ranked.candidate.names) MoveToCmem(name, -1);
    for (size_t p = ranked.first; p <= ranked.last; ++p) ranked.timeline->own[p] += ranked.bytes;
    for (Timeline* t = ranked.timeline; t->caller != nullptr; t = t->caller) {
      Bytes& inside = t->caller->inside[t->called_at];
      inside = std::max(inside, t->Peak());
    }
  }

  const target::Target& target_;
  const Bytes capacity_;
  std::vector<Timeline> timelines_;  // not resized once made
  std::unordered_map<const Computation*, size_t> by_computation_;
  std::vector<Ranked> ranked_;
};

// The first value that is in one of the spaces, or null.
const Instruction* FindIn(const hlo::Module& module, bool vmem) {
  for (const Computation* computation : ControlComputations(module)) {
    for (const Instruction* i : computation->instructions()) {
      for (const Shape* leaf : hlo::Leaves(i->shape())) {
        const int64_t space = leaf->IsArray() ? leaf->layout.memory_space : hlo::kHbmSpace;
        if (space == hlo::kCmemSpace || (vmem && space == hlo::kVmemSpace)) return i;
      }
    }
  }
  return nullptr;
}

}  // namespace

absl::StatusOr<bool> PlaceInCmem(hlo::Module& module, const PassContext& context) {
  const target::Target& target = context.target;
  const Bytes capacity = target.UsableCmem();
  if (const Instruction* placed = FindIn(module, /*vmem=*/false);
      placed != nullptr && capacity == Bytes(0)) {
    return UserError(
        fmt::format("{} is in CMEM (S({}) in its layout), which {} does not have; v4 and v4i do",
                    placed->Describe(), hlo::kCmemSpace, target.chip().name));
  }
  if (capacity == Bytes(0) || FindIn(module, /*vmem=*/true) != nullptr) return false;
  return Placer(module, target, capacity).Run();
}

bool MayUseCmem(const hlo::Module& module) {
  if (module.entry() == nullptr) return false;
  if (FindIn(module, /*vmem=*/false) != nullptr) return true;
  if (FindIn(module, /*vmem=*/true) != nullptr) return false;
  for (const Computation* computation : ControlComputations(module)) {
    for (Instruction* i : computation->instructions()) {
      if (!CandidatesOf(*i).empty()) return true;
    }
  }
  return false;
}

}  // namespace tpusim::passes
