#include "workloads/hlo/analysis/live_intervals.h"

#include <algorithm>
#include <functional>
#include <span>
#include <utility>

#include "workloads/hlo/analysis/compiled.h"
#include "workloads/hlo/analysis/donation.h"
#include "workloads/hlo/analysis/underlying.h"
#include "workloads/hlo/ir/opcode.h"

namespace tpusim::hlo {
namespace {

constexpr int32_t kNoBuffer = -1;

using LeafBuffers = std::vector<int32_t>;

// One execution of a computation, its callees left aside.
class Visit {
 public:
  Visit(const Computation& computation, const std::vector<LeafBuffers>& given,
        const AliasAnalysis& aliases, const SizeOfArray& size, LiveIntervals& lives,
        std::vector<int64_t>& last_use)
      : order(computation.Order()),
        computation_(computation),
        given_(given),
        aliases_(aliases),
        size_(size),
        lives_(lives),
        last_use_(last_use),
        first_(static_cast<int32_t>(lives.buffers.size())),
        buffers_(aliases.arrays().size(), kNoBuffer) {
    own.alloc_before.resize(order.size());
    own.free_after.resize(order.size());
    for (const LeafBuffers& buffers : given) {
      for (const int32_t b : buffers) {
        if (b != kNoBuffer) last_use_[b] = -1;
      }
    }
    for (size_t n = 0; n < order.size(); ++n) Add(n);
  }

  LeafBuffers BuffersOf(const Instruction* value) const {
    LeafBuffers buffers;
    for (const int32_t a : aliases_.ArraysOf(value)) buffers.push_back(BufferOf(a));
    return buffers;
  }

  // Results that take the places of what is given, all of them at once.
  void MakeInside(const std::vector<Donation>& donations) {
    std::unordered_map<int32_t, size_t> births;  // of buffers that have not moved
    for (size_t n = 0; n < order.size(); ++n) {
      for (const int32_t b : own.alloc_before[n]) births[b] = n;
    }
    const LeafBuffers results = BuffersOf(computation_.root());
    for (const Donation& donation : donations) {
      const int32_t from = results[donation.result_leaf];
      const int32_t to = given_[donation.parameter][donation.parameter_leaf];
      if (from == kNoBuffer || to == kNoBuffer) continue;
      LiveBuffer &made = lives_.buffers[from], &place = lives_.buffers[to];
      const auto birth = births.find(from);  // none: given as well, or moved already
      if (made.bytes != place.bytes || made.space != place.space || birth == births.end() ||
          !IsFree(to, birth->second)) {
        continue;
      }
      made.inside = to;
      taken_.emplace(to, static_cast<int64_t>(birth->second));
      births.erase(birth);
    }
    Move();
  }

  // Results that take the places of operands, as the TPU compiler says; with `given`, of what a
  // loop carries as well.
  void WriteOver(bool given) {
    for (size_t n = 0; n < order.size(); ++n) {
      for (const int32_t b : own.alloc_before[n]) WriteOver(b, n, given);
    }
    Move();
  }

  // When all of them are where they are.
  void AddEnds() {
    for (const int32_t b : BuffersOf(computation_.root())) {
      if (b == kNoBuffer) continue;
      last_use_[b] = std::ssize(order) - 1;
      if (computation_.parent()->entry() != &computation_) continue;
      lives_.buffers[b].result = !lives_.buffers[b].argument;
    }
    AllocateResultsFirst();
    for (const LeafBuffers& buffers : own.alloc_before) {
      for (const int32_t b : buffers) own.free_after[last_use_[b]].push_back(b);
    }
  }

  const std::vector<Instruction*> order;
  ComputationLives own;
  std::vector<std::pair<int32_t, size_t>> results;  // of the program in HBM, and where they are made

 private:
  // The caller hands over the buffers of the program's results in HBM before it begins.
  void AllocateResultsFirst() {
    for (size_t n = 0; n < order.size(); ++n) {
      std::erase_if(own.alloc_before[n], [&](int32_t b) {
        const bool from_caller = lives_.buffers[b].result && lives_.buffers[b].space == kHbmSpace;
        if (from_caller) results.emplace_back(b, n);
        return from_caller;
      });
    }
    for (const auto& [b, made] : results) own.alloc_before.front().push_back(b);
  }

  // The buffers of an instruction's arrays, and what it uses.
  void Add(size_t n) {
    const Instruction& i = *order[n];
    const AliasAnalysis::ArrayRange made = aliases_.MadeBy(&i);
    for (int32_t a = made.first; a < made.last; ++a) {
      const ArrayValue& array = aliases_.arrays()[a];
      if (array.takes != kNoArray) {
        buffers_[a] = buffers_[array.takes];
      } else if (i.opcode() == Opcode::kParameter) {
        buffers_[a] = given_[i.attrs().parameter_number()][array.leaf];
      } else if (const BufferSize size = size_(*array.shape); size.bytes > Bytes(0)) {
        buffers_[a] = static_cast<int32_t>(lives_.buffers.size());
        lives_.buffers.push_back({&i, array.leaf, array.shape, size.bytes, size.space});
        last_use_.push_back(-1);
        own.alloc_before[n].push_back(buffers_[a]);
        Use(i, buffers_[a], n, /*writes=*/true);
      }
    }
    const auto result = aliases_.ArraysOf(&i);
    // Of the other elements of a tuple, this does not say that they are needed still.
    const bool element = i.opcode() == Opcode::kGetTupleElement;
    for (const Instruction* o : i.operands()) {
      for (const int32_t a : element ? result : aliases_.ArraysOf(o)) {
        const int32_t b = BufferOf(a);
        if (b != kNoBuffer) Use(i, b, n, IsControlFlow(i.opcode()) || IsAmong(result, b));
      }
    }
  }

  // In a buffer of one size and memory, until something else takes that.
  void WriteOver(int32_t made, size_t born, bool given) {
    const Instruction& i = *order[born];
    LiveBuffer& result = lives_.buffers[made];
    for (const StatedAlias& alias : StatedAliases(i)) {
      if (alias.leaf != result.leaf || !i.operand(alias.operand)->shape().IsArray()) continue;
      int32_t place = BufferOf(aliases_.ArraysOf(i.operand(alias.operand))[0]);
      if (place == kNoBuffer) continue;
      if (lives_.buffers[place].inside >= 0) place = lives_.buffers[place].inside;
      const LiveBuffer& operand = lives_.buffers[place];
      const auto taken = taken_.find(place);
      if ((place < first_ && !given) || operand.bytes != result.bytes ||
          operand.space != result.space || last_use_[place] != static_cast<int64_t>(born) ||
          (taken != taken_.end() && last_use_[made] > taken->second)) {
        continue;
      }
      result.inside = place;
      last_use_[place] = last_use_[made];
      return;
    }
  }

  // Replaces buffers that lie in another one by that one; they have no interval of their own.
  void Move() {
    const auto inside = [&](int32_t b) { return b != kNoBuffer && lives_.buffers[b].inside >= 0; };
    for (int32_t& b : buffers_) {
      if (inside(b)) b = lives_.buffers[b].inside;
    }
    for (LeafBuffers& buffers : own.alloc_before) std::erase_if(buffers, inside);
  }

  int32_t BufferOf(int32_t array) const { return array == kNoArray ? kNoBuffer : buffers_[array]; }
  bool IsAmong(std::span<const int32_t> arrays, int32_t buffer) const {
    return std::ranges::any_of(arrays, [&](int32_t a) { return BufferOf(a) == buffer; });
  }

  void Use(const Instruction& i, int32_t buffer, size_t n, bool writes) {
    last_use_[buffer] = static_cast<int64_t>(n);
    if (!OnlyNames(i)) lives_.uses.push_back({buffer, &i, writes});
  }

  static bool StatesAlias(const Instruction& i, size_t operand) {
    return std::ranges::any_of(StatedAliases(i), [&](const StatedAlias& alias) {
      return alias.operand == static_cast<int64_t>(operand);
    });
  }

  // Whether an array that is made at this position may overwrite what the buffer held before.
  bool IsFree(int32_t buffer, size_t born) const {
    const auto made_at = static_cast<int64_t>(born);
    if (last_use_[buffer] != made_at) return last_use_[buffer] < made_at;
    const Instruction& i = *order[born];
    for (size_t o = 0; o < i.operands().size(); ++o) {
      if (IsAmong(aliases_.ArraysOf(i.operand(o)), buffer) &&
          !MayOverwrite(i, static_cast<int64_t>(o)) && !StatesAlias(i, o)) {
        return false;
      }
    }
    return true;
  }

  const Computation& computation_;
  const std::vector<LeafBuffers>& given_;
  const AliasAnalysis& aliases_;
  const SizeOfArray& size_;
  LiveIntervals& lives_;
  std::vector<int64_t>& last_use_;  // positions, by buffer; -1: none
  const int32_t first_;             // of the buffers that it makes
  // Given buffers and when a result was made inside. Looked up, never iterated.
  std::unordered_map<int32_t, int64_t> taken_;
  LeafBuffers buffers_;  // by array
};

class Intervals {
 public:
  Intervals(ModuleAliases& aliases, const SizeOfArray& size) : aliases_(aliases), size_(size) {}

  LiveIntervals Run(const Module& module) {
    std::vector<LeafBuffers> arguments;
    for (const Instruction* p : module.entry()->parameters()) {
      LeafBuffers& leaves = arguments.emplace_back();
      for (const Shape* leaf : Leaves(p->shape())) {
        const BufferSize size = size_(*leaf);
        leaves.push_back(kNoBuffer);
        if (size.bytes == Bytes(0)) continue;
        leaves.back() = static_cast<int32_t>(lives_.buffers.size());
        lives_.arguments.push_back(leaves.back());
        lives_.buffers.push_back({p, std::ssize(leaves) - 1, leaf, size.bytes, size.space, true});
        last_use_.push_back(-1);
        lives_.buffers.back().begin = Next(nullptr);
      }
    }
    Run(*module.entry(), arguments, Donations(module));
    ShareResults();
    return std::move(lives_);
  }

 private:
  // The moment that is over with what the instruction makes come or go.
  int64_t Next(const Instruction* with) {
    lives_.moments.push_back(with);
    return std::ssize(lives_.moments) - 2;
  }

  void Run(const Computation& computation, const std::vector<LeafBuffers>& given,
           const std::vector<Donation>& donations) {
    Visit visit(computation, given, aliases_.Of(computation), size_, lives_, last_use_);
    if (!donations.empty()) visit.MakeInside(donations);
    visit.WriteOver(/*given=*/&computation != computation.parent()->entry() && !donations.empty());
    visit.AddEnds();
    for (size_t n = 0, made = 0; n < visit.order.size(); ++n) {
      const Instruction* i = visit.order[n];
      for (; made < visit.results.size() && visit.results[made].second == n; ++made) {
        results_.push_back({visit.results[made].first, std::ssize(lives_.moments) - 1, {}});
      }
      for (const int32_t b : visit.own.alloc_before[n]) lives_.buffers[b].begin = Next(i);
      visit.own.moments.push_back(std::ssize(lives_.moments) - 1);
      if (IsControlFlow(i->opcode())) RunCalled(*i, visit);
      for (const int32_t b : visit.own.free_after[n]) lives_.buffers[b].end = Next(i);
    }
    lives_.computations[&computation] = std::move(visit.own);
  }

  void RunCalled(const Instruction& i, const Visit& visit) {
    if (i.opcode() == Opcode::kWhile) {
      const std::vector<LeafBuffers> carried = {visit.BuffersOf(&i)};
      // A loop's next values take the places of the last ones.
      std::vector<Donation> next;
      for (int64_t leaf = 0; leaf < std::ssize(carried[0]); ++leaf) next.push_back({leaf, 0, leaf});
      Run(*i.called()[0], carried, next);
      Run(*i.called()[1], carried, {});
    } else if (i.opcode() == Opcode::kConditional) {
      for (size_t b = 0; b < i.called().size(); ++b) {
        Run(*i.called()[b], {visit.BuffersOf(i.operand(b + 1))}, {});
      }
    } else {
      std::vector<LeafBuffers> arguments;
      for (const Instruction* o : i.operands()) arguments.push_back(visit.BuffersOf(o));
      Run(*i.called()[0], arguments, {});
    }
  }

  // A result of the program.
  struct Result {
    int32_t buffer = -1;
    int64_t made = 0;                                // moment
    std::vector<std::pair<int64_t, int64_t>> taken;  // moments, before that
  };

  // Puts buffers that are over before a result is made into that one's, the largest that fit first.
  // Not what collectives make: other chips write it, at an address that is the same on all of them.
  void ShareResults() {
    if (results_.empty()) return;
    const auto bytes = [&](int32_t b) { return lives_.buffers[b].bytes; };
    std::ranges::stable_sort(results_, {}, [&](const Result& r) { return bytes(r.buffer); });
    std::vector<int32_t> others;
    for (int32_t b = 0; b < std::ssize(lives_.buffers); ++b) {
      const LiveBuffer& buffer = lives_.buffers[b];
      const bool own = buffer.inside < 0 && !buffer.argument && !buffer.result &&
                       !IsCollective(buffer.made_by->opcode());
      if (own && buffer.space == kHbmSpace && buffer.bytes > Bytes(0)) others.push_back(b);
    }
    std::ranges::stable_sort(others, std::greater<>(), bytes);
    for (const int32_t b : others) {
      LiveBuffer& buffer = lives_.buffers[b];
      const auto fitting = std::ranges::lower_bound(
          results_, buffer.bytes, {}, [&](const Result& r) { return bytes(r.buffer); });
      const auto free = std::find_if(fitting, results_.end(), [&](const Result& r) {
        return buffer.end < r.made && std::ranges::none_of(r.taken, [&](const auto& other) {
                 return buffer.begin < other.second && other.first < buffer.end;
               });
      });
      if (free == results_.end()) continue;
      free->taken.emplace_back(buffer.begin, buffer.end);
      buffer.inside = free->buffer;
    }
    for (LiveBuffer& buffer : lives_.buffers) {
      if (buffer.inside < 0) continue;
      const int32_t around = lives_.buffers[buffer.inside].inside;
      if (around >= 0) buffer.inside = around;
    }
    const auto inside = [&](int32_t b) { return lives_.buffers[b].inside >= 0; };
    for (auto& [computation, lives] : lives_.computations) {
      for (std::vector<int32_t>& buffers : lives.alloc_before) std::erase_if(buffers, inside);
      for (std::vector<int32_t>& buffers : lives.free_after) std::erase_if(buffers, inside);
    }
  }

  ModuleAliases& aliases_;
  const SizeOfArray& size_;
  LiveIntervals lives_;
  std::vector<int64_t> last_use_;  // in the current computation, by buffer
  std::vector<Result> results_;
};

}  // namespace

LiveIntervals LiveIntervalsOf(const Module& module, ModuleAliases& aliases,
                              const SizeOfArray& size) {
  return Intervals(aliases, size).Run(module);
}

}  // namespace tpusim::hlo
