#include "workloads/buffers/memory_plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "configs/status_macros.h"
#include "workloads/buffers/donation.h"
#include "workloads/buffers/fits.h"
#include "workloads/hlo/analysis/in_place.h"
#include "workloads/hlo/analysis/storage.h"
#include "workloads/hlo/ir/opcode.h"

namespace tpusim::buffers {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;
using hlo::Shape;

constexpr int32_t kNoBuffer = -1;  // tokens, flags

int64_t LeafCount(const Shape& shape) {
  if (!shape.IsTuple()) return 1;
  int64_t n = 0;
  for (const Shape& s : shape.tuple) n += LeafCount(s);
  return n;
}

// First leaf of tuple element `index`.
int64_t LeafOffset(const Shape& tuple, int64_t index) {
  int64_t n = 0;
  for (int64_t k = 0; k < index; ++k) n += LeafCount(tuple.tuple[k]);
  return n;
}

void AppendLeaves(const Shape& shape, std::vector<const Shape*>& leaves) {
  if (!shape.IsTuple()) {
    leaves.push_back(&shape);
    return;
  }
  for (const Shape& s : shape.tuple) AppendLeaves(s, leaves);
}

using LeafBuffers = std::vector<int32_t>;

class Planner {
 public:
  explicit Planner(const target::Target& target) : target_(target) {}

  MemoryPlan Run(const hlo::Module& module) {
    const Computation& entry = *module.entry();
    std::vector<LeafBuffers> parameters;
    for (const Instruction* p : entry.parameters()) {
      parameters.push_back(NewBuffers(*p));
      for (int32_t b : parameters.back()) {
        if (b == kNoBuffer) continue;
        plan_.arguments.push_back(b);
        plan_.buffers[b].argument = true;
        Come(b);
      }
    }
    NotePeak(nullptr);
    Visit(entry, parameters, Donations(module));
    plan_.live_at_peak = LiveAtPeak();
    std::sort(plan_.live_at_peak.begin(), plan_.live_at_peak.end(), [&](int32_t a, int32_t b) {
      return std::pair(-plan_.buffers[a].bytes.value(), a) <
             std::pair(-plan_.buffers[b].bytes.value(), b);
    });
    PlaceInHbm();
    return std::move(plan_);
  }

 private:
  LeafBuffers NewBuffers(const Instruction& i) {
    std::vector<const Shape*> leaves;
    AppendLeaves(i.shape(), leaves);
    LeafBuffers buffers;
    for (const Shape* leaf : leaves) {
      buffers.push_back(NewBuffer(i, *leaf));
      if (buffers.back() == kNoBuffer) continue;
      plan_.buffers.back().leaf = static_cast<int64_t>(buffers.size()) - 1;
    }
    return buffers;
  }

  int32_t NewBuffer(const Instruction& i, const Shape& leaf) {
    const target::MemorySpace& space =
        target::MemorySpaceOf(leaf.IsArray() ? leaf.layout.memory_space : hlo::kHbmSpace);
    const Bytes bytes = space.planned ? target_.PaddedSize(leaf) : Bytes(0);
    if (bytes == Bytes(0)) return kNoBuffer;
    plan_.buffers.push_back({.value = i.name(),
                             .shape = leaf.ToString(),
                             .bytes = bytes,
                             .space = space.number,
                             .made_by = &i,
                             .array = &leaf});
    return static_cast<int32_t>(plan_.buffers.size()) - 1;
  }

  // Which element of a start's tuple is the result; the one other array element
  // names the operand, the rest are flags.
  static int64_t ResultElement(const Instruction& start) {
    return start.opcode() == Opcode::kCopyStart ? 0 : 1;
  }

  LeafBuffers StartBuffers(const Instruction& i,
                           const std::unordered_map<const Instruction*, LeafBuffers>& known,
                           LeafBuffers& fresh) {
    const Shape& shape = i.shape();
    const int64_t result = ResultElement(i);
    const int64_t first = LeafOffset(shape, result), count = LeafCount(shape.tuple[result]);
    LeafBuffers all(static_cast<size_t>(LeafCount(shape)), kNoBuffer);
    std::vector<const Shape*> leaves;
    AppendLeaves(shape.tuple[result], leaves);
    for (int64_t n = 0; n < count; ++n) {
      const int32_t buffer = NewBuffer(i, *leaves[n]);
      all[first + n] = buffer;
      fresh.push_back(buffer);
    }
    // What is being read must stay.
    LeafBuffers operands;
    for (const Instruction* o : i.operands()) {
      operands.insert(operands.end(), known.at(o).begin(), known.at(o).end());
    }
    const int64_t at = LeafOffset(shape, 1 - result);
    const int64_t named = std::min<int64_t>(LeafCount(shape.tuple[1 - result]),
                                            static_cast<int64_t>(operands.size()));
    for (int64_t n = 0; n < named; ++n) all[at + n] = operands[n];
    return all;
  }

  LeafBuffers ResultOfStart(const Instruction& operand, const LeafBuffers& all) {
    const Instruction* start = &operand;
    while (start->opcode() == Opcode::kAsyncUpdate) start = start->operand(0);
    const int64_t result = ResultElement(*start);
    const int64_t first = LeafOffset(start->shape(), result);
    return LeafBuffers(all.begin() + first,
                       all.begin() + first + LeafCount(start->shape().tuple[result]));
  }

  // Buffers of the value that `i` makes; `fresh` receives the new ones.
  LeafBuffers BuffersOf(const Instruction& i,
                        const std::unordered_map<const Instruction*, LeafBuffers>& known,
                        LeafBuffers& fresh) {
    switch (i.opcode()) {
      case Opcode::kTuple: {
        LeafBuffers all;
        for (const Instruction* o : i.operands()) {
          all.insert(all.end(), known.at(o).begin(), known.at(o).end());
        }
        return all;
      }
      case Opcode::kGetTupleElement: {
        const LeafBuffers& from = known.at(i.operand(0));
        const int64_t first = LeafOffset(i.operand(0)->shape(), i.attrs().tuple_index());
        return LeafBuffers(from.begin() + first, from.begin() + first + LeafCount(i.shape()));
      }
      default:
        break;
    }
    if (hlo::ForwardsOperand(i.opcode())) return known.at(i.operand(0));
    // The start of an all-reduce has its result, not what it works on as well.
    if (hlo::IsAsyncStart(i.opcode()) && i.opcode() != Opcode::kAllReduceStart) {
      return StartBuffers(i, known, fresh);
    }
    if (hlo::IsAsyncDone(i.opcode())) {
      return ResultOfStart(*i.operand(0), known.at(i.operand(0)));
    }
    const std::vector<hlo::InPlaceResult> in_place = hlo::InPlaceResults(i);
    if (in_place.empty()) {
      fresh = NewBuffers(i);
      return fresh;
    }
    std::vector<const Shape*> leaves;
    AppendLeaves(i.shape(), leaves);
    LeafBuffers all(leaves.size(), kNoBuffer);
    std::vector<bool> kept(leaves.size(), false);
    for (const hlo::InPlaceResult& result : in_place) {
      all[result.leaf] = known.at(i.operand(result.operand))[0];
      kept[result.leaf] = true;
    }
    for (size_t n = 0; n < leaves.size(); ++n) {
      if (kept[n]) continue;
      all[n] = NewBuffer(i, *leaves[n]);
      fresh.push_back(all[n]);
    }
    return all;
  }

  using BuffersOfValues = std::unordered_map<const Instruction*, LeafBuffers>;

  // Whether the result in buffer `from` may be written into the argument `to`: it
  // is made when nobody needs the argument any more.
  bool MayMove(const std::vector<Instruction*>& order, const BuffersOfValues& of,
               const std::unordered_map<int32_t, size_t>& births,
               const std::unordered_map<int32_t, size_t>& last_use, int32_t from,
               int32_t to) const {
    if (from == kNoBuffer || to == kNoBuffer || from == to) return false;
    if (plan_.buffers[from].bytes != plan_.buffers[to].bytes ||
        plan_.buffers[from].space != plan_.buffers[to].space) {
      return false;
    }
    const auto birth = births.find(from);
    if (birth == births.end()) return false;  // another argument, or moved to one already
    const size_t born = birth->second;
    const auto used = last_use.find(to);
    if (used == last_use.end() || used->second < born) return true;
    if (used->second > born) return false;
    const Instruction& i = *order[born];
    for (size_t o = 0; o < i.operands().size(); ++o) {
      const LeafBuffers& buffers = of.at(i.operand(o));
      if (std::count(buffers.begin(), buffers.end(), to) == 0) continue;
      if (!MayOverwrite(i, static_cast<int64_t>(o))) return false;
    }
    return true;
  }

  // Results that arguments take, all of them at once: buffer of a result to that of the
  // argument.
  static void Move(const std::unordered_map<int32_t, int32_t>& moves, BuffersOfValues& of,
                   std::vector<LeafBuffers>& made) {
    for (auto& [value, buffers] : of) {
      for (int32_t& buffer : buffers) {
        const auto moved = moves.find(buffer);
        if (moved != moves.end()) buffer = moved->second;
      }
    }
    for (LeafBuffers& buffers : made) {
      std::erase_if(buffers, [&](int32_t buffer) { return moves.contains(buffer); });
    }
  }

  // A loop's next values take the places of the last ones, as results those of donated
  // arguments.
  static std::vector<Donation> CarriedBy(const Instruction& loop) {
    std::vector<Donation> carried;
    for (int64_t leaf = 0; leaf < LeafCount(loop.shape()); ++leaf) {
      carried.push_back({leaf, 0, leaf});
    }
    return carried;
  }

  void Visit(const Computation& computation, const std::vector<LeafBuffers>& parameters,
             const std::vector<Donation>& donations) {
    const std::vector<Instruction*> order = computation.Order();
    std::unordered_map<const Instruction*, LeafBuffers> of;
    std::vector<LeafBuffers> made(order.size());
    std::unordered_map<int32_t, size_t> last_use;
    for (size_t n = 0; n < order.size(); ++n) {
      const Instruction& i = *order[n];
      of[&i] = i.opcode() == Opcode::kParameter ? parameters[i.attrs().parameter_number()]
                                                : BuffersOf(i, of, made[n]);
      for (int32_t b : made[n]) {
        last_use[b] = n;
        NoteUse(i, b, /*writes=*/true);
      }
      const LeafBuffers& result = of.at(&i);
      for (const Instruction* o : i.operands()) {
        // Of the other elements of a tuple nobody says that they are needed still.
        const bool element = i.opcode() == Opcode::kGetTupleElement;
        for (int32_t b : element ? result : of.at(o)) {
          last_use[b] = n;
          NoteUse(i, b,
                  hlo::IsControlFlow(i.opcode()) ||
                      std::find(result.begin(), result.end(), b) != result.end());
        }
      }
    }
    if (!donations.empty()) {
      std::unordered_map<int32_t, size_t> births;  // of buffers that have not moved
      for (size_t n = 0; n < made.size(); ++n) {
        for (int32_t b : made[n]) births[b] = n;
      }
      std::unordered_map<int32_t, int32_t> moves;
      const LeafBuffers& results = of.at(computation.root());
      for (const Donation& donation : donations) {
        const int32_t from = results[donation.result_leaf];
        const int32_t to = parameters[donation.parameter][donation.parameter_leaf];
        if (!MayMove(order, of, births, last_use, from, to)) continue;
        moves[from] = to;
        births.erase(from);
      }
      if (!moves.empty()) Move(moves, of, made);
    }
    for (int32_t b : of.at(computation.root())) {
      last_use[b] = order.size() - 1;
      if (b == kNoBuffer || computation.parent()->entry() != &computation) continue;
      plan_.buffers[b].result = !plan_.buffers[b].argument;
    }

    ComputationMemory memory;
    memory.alloc_before.resize(order.size());
    memory.free_after.resize(order.size());
    for (size_t n = 0; n < order.size(); ++n) {
      for (int32_t b : made[n]) {
        if (b == kNoBuffer) continue;
        memory.alloc_before[n].push_back(b);
        memory.free_after[last_use.at(b)].push_back(b);
      }
    }
    for (size_t n = 0; n < order.size(); ++n) {
      for (int32_t b : memory.alloc_before[n]) {
        Come(b);
      }
      const Instruction& i = *order[n];
      NotePeak(&i);
      memory.moments.push_back(static_cast<int64_t>(history_.size()));
      if (i.opcode() == Opcode::kWhile) {
        Visit(*i.called()[0], {of.at(&i)}, CarriedBy(i));
        Visit(*i.called()[1], {of.at(&i)}, {});
      } else if (i.opcode() == Opcode::kConditional) {
        for (size_t b = 0; b < i.called().size(); ++b) {
          Visit(*i.called()[b], {of.at(i.operand(b + 1))}, {});
        }
      } else if (i.opcode() == Opcode::kCall) {
        std::vector<LeafBuffers> arguments;
        for (const Instruction* o : i.operands()) arguments.push_back(of.at(o));
        Visit(*i.called()[0], arguments, {});
      }
      for (int32_t b : memory.free_after[n]) {
        Go(b);
      }
    }
    plan_.computations[&computation] = std::move(memory);
  }

  void NoteUse(const Instruction& i, int32_t buffer, bool writes) {
    if (buffer != kNoBuffer && !hlo::OnlyNames(i)) plan_.uses.push_back({buffer, &i, writes});
  }

  void Come(int32_t buffer) {
    Buffer& b = plan_.buffers[buffer];
    b.begin = static_cast<int64_t>(history_.size());
    history_.push_back(buffer);
    live_[b.space] += b.bytes;
  }
  void Go(int32_t buffer) {
    Buffer& b = plan_.buffers[buffer];
    b.end = static_cast<int64_t>(history_.size());
    history_.push_back(~buffer);
    live_[b.space] -= b.bytes;
  }

  // The peak of HBM is what the arguments take and how high the heap grows.
  void PlaceInHbm() {
    Bytes& peak = plan_.peaks[hlo::kHbmSpace];
    Bytes arguments(0);
    std::vector<HeapBuffer> in_heap(plan_.buffers.size());
    for (size_t n = 0; n < in_heap.size(); ++n) {
      const Buffer& b = plan_.buffers[n];
      if (b.space != hlo::kHbmSpace) continue;
      if (b.argument) {
        arguments += b.bytes;
      } else {
        in_heap[n] = {b.begin, b.end, b.bytes};
      }
    }
    Heap heap = PlaceInHeap(in_heap, target_.policy().heap_alignment_bytes);
    const Bytes room = target_.Usable(hlo::kHbmSpace) - arguments;
    if (heap.height > room) {
      Heap packed = PackHeap(in_heap);
      if (packed.height < heap.height) heap = std::move(packed);
    }
    plan_.fragmentation = arguments + heap.height - peak;
    peak += plan_.fragmentation;
    plan_.offsets = std::move(heap.offsets);
  }

  void NotePeak(const Instruction* at) {
    for (const auto& [space, live] : live_) {
      Bytes& peak = plan_.peaks[space];
      if (live <= peak) continue;
      peak = live;
      if (space != hlo::kHbmSpace) continue;
      before_peak_ = history_.size();
      plan_.peak_at = at;
    }
  }

  // The buffers that lived when the peak was reached, found once that is known.
  std::vector<int32_t> LiveAtPeak() const {
    std::set<int32_t> live;
    for (size_t n = 0; n < before_peak_; ++n) {
      const int32_t buffer = history_[n] >= 0 ? history_[n] : ~history_[n];
      if (plan_.buffers[buffer].space != hlo::kHbmSpace) continue;
      if (history_[n] >= 0) {
        live.insert(history_[n]);
      } else {
        live.erase(~history_[n]);
      }
    }
    return {live.begin(), live.end()};
  }

  const target::Target& target_;
  MemoryPlan plan_;
  std::vector<int32_t> history_;   // b: buffer b comes; ~b: it goes
  size_t before_peak_ = 0;         // the part of it
  std::map<int64_t, Bytes> live_;  // by memory space
};

}  // namespace

MemoryPlan PlanBuffers(const hlo::Module& module, const target::Target& target) {
  return Planner(target).Run(module);
}

absl::StatusOr<MemoryPlan> PlanMemory(const hlo::Module& module, const target::Target& target) {
  MemoryPlan plan = PlanBuffers(module, target);
  RETURN_IF_ERROR(CheckFits(module, plan, target));
  return plan;
}

}  // namespace tpusim::buffers
