#include "sim/results/report/alignment.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "sim/results/report/name_pattern.h"
#include "sim/results/report/rollup.h"
#include "sim/results/report/scope.h"
#include "sim/results/report/text.h"

namespace tpusim::results {
namespace {

using isa::SourcePlace;
using PlaceKey = SourcePlace;  // without numbers in the scope and folders in the source
using PlaceKeys = std::set<PlaceKey>;

Picoseconds AbsoluteTime(Picoseconds t) { return std::max(t, Picoseconds(0) - t); }

// Places by key, with what the scopes of those of one key have in common.
class PlaceTable {
 public:
  explicit PlaceTable(AlignBy by) : by_(by) {}

  PlaceKey Add(const SourcePlace& place) {
    SourcePlace kept = place;
    if (by_ == AlignBy::kSource) kept.scope.clear();
    if (by_ == AlignBy::kScope) kept.source.clear();
    // An export and a dump of the compiler may name one file from different folders.
    PlaceKey key{NumberlessKey(kept.scope), kept.source.substr(kept.source.rfind('/') + 1)};
    Named& named = named_[key];
    named.scope.Add(kept.scope);
    if (named.source.empty()) named.source = kept.source;
    return key;
  }
  SourcePlace NameOf(const PlaceKey& key) const {
    const Named& named = named_.at(key);
    return {named.scope.text(), named.source};
  }

 private:
  struct Named {
    NamePattern scope;
    std::string source;  // as the first program has it
  };

  AlignBy by_;
  std::map<PlaceKey, Named> named_;
};

// Kernels of one program that cover the same places, which are made at one of them.
struct KernelsAlike {
  NamePattern name;
  int64_t count = 0;
  Picoseconds time{0};
};
struct KernelKey {
  PlaceKeys covered;
  PlaceKey made;
  std::string name;  // without numbers
  auto operator<=>(const KernelKey&) const = default;
};
using Kernels = std::map<KernelKey, KernelsAlike>;
using CollectivesOfPlace = std::map<PlacedCollective, AlignedCollective>;

struct PlaceSides {
  Both<PartTimes> times;
  Both<CollectivesOfPlace> collectives;
};

class Aligner {
 public:
  Aligner(const Both<const Report*>& reports, AlignBy by) : reports_(reports), places_(by) {}

  Alignment Run() {
    for (size_t side = 0; side < 2; ++side) FindKernels(side);
    for (size_t side = 0; side < 2; ++side) AddOps(side);
    Alignment result;
    for (auto& [key, sides] : rows_) {
      AlignedPlace row{places_.NameOf(key), sides.times, {}, {}};
      for (size_t side = 0; side < 2; ++side) {
        row.kernels[side] = Otherwise(key, side);
        if (SameCollectives(sides)) continue;
        for (const auto& [how, all] : sides.collectives[side]) {
          row.collectives[side].push_back(all);
        }
      }
      for (size_t side = 0; side < 2; ++side) FromElsewhere(key, side, row);
      result.places.push_back(std::move(row));
    }
    std::ranges::stable_sort(result.places, std::greater<>(),
                             [](const AlignedPlace& p) { return AbsoluteTime(p.Change()); });
    result.memory = Memory();
    FillTotals(result);
    return result;
  }

 private:
  const PlacedProgram& Program(size_t side) const { return reports_[side]->placed; }

  KernelKey KeyOf(size_t side, const PlacedOp& op) {
    const PlacedProgram& program = Program(side);
    KernelKey key;
    key.made = places_.Add(program.places[op.place]);
    key.covered = {key.made};
    for (const int64_t place : op.covered) key.covered.insert(places_.Add(program.places[place]));
    key.name = NumberlessKey(op.name);
    return key;
  }

  void FindKernels(size_t side) {
    for (const PlacedOp& op : Program(side).ops) {
      if (op.part != OpPart::kKernel) continue;
      const KernelKey key = KeyOf(side, op);
      KernelsAlike& alike = kernels_[side][key];
      alike.name.Add(op.name);
      alike.count += op.count;
      alike.time += op.time;
      made_[side][key.covered].insert(key.made);
    }
  }

  bool BothHave(const PlaceKeys& covered) const {
    return made_[0].contains(covered) && made_[1].contains(covered);
  }

  // The compilers may call one kernel after different lines of it.
  PlaceKey PlaceOfKernel(const KernelKey& key) const {
    if (!BothHave(key.covered)) return key.made;
    const std::set<PlaceKey>& first = made_[0].at(key.covered);
    return first.contains(key.made) ? key.made : *first.begin();
  }

  void AddOps(size_t side) {
    const PlacedProgram& program = Program(side);
    Picoseconds idle = reports_[side]->step_time;
    for (const PlacedOp& op : program.ops) {
      const bool kernel = op.part == OpPart::kKernel;
      const PlaceKey key =
          kernel ? PlaceOfKernel(KeyOf(side, op)) : places_.Add(program.places[op.place]);
      PlaceSides& row = rows_[key];
      row.times[side].of[static_cast<size_t>(op.part)] += op.time;
      if (kernel) row.times[side].kernels += op.count;
      if (op.collective >= 0) {
        AddCollective(program.collectives[op.collective], op, row.collectives[side]);
      }
      idle -= op.time;
    }
    if (idle == Picoseconds(0)) return;
    const std::string name(kIdle);
    rows_[places_.Add({name, name})].times[side].of[static_cast<size_t>(OpPart::kRest)] += idle;
  }

  static void AddCollective(const PlacedCollective& how, const PlacedOp& op,
                            CollectivesOfPlace& all) {
    AlignedCollective& sum = all[how];
    sum.how = how;
    sum.count += op.count;
    sum.waited += op.time;
  }

  static bool SameCollectives(const PlaceSides& sides) {
    return std::ranges::equal(sides.collectives[0], sides.collectives[1],
                              [](const auto& a, const auto& b) {
                                return a.first == b.first && a.second.count == b.second.count;
                              });
  }

  AlignedKernel Shown(const KernelKey& key, const KernelsAlike& alike) const {
    AlignedKernel kernel{alike.name.text(), alike.name.members(),     alike.count,
                         alike.time,        places_.NameOf(key.made), {}};
    for (const PlaceKey& place : key.covered) kernel.covered.push_back(places_.NameOf(place));
    return kernel;
  }

  // Returns the kernels that `chosen` takes and the other program does not have, longest first.
  template <typename Chosen>
  std::vector<AlignedKernel> Only(size_t side, const Chosen& chosen) const {
    std::vector<AlignedKernel> kernels;
    for (const auto& [key, alike] : kernels_[side]) {
      if (!BothHave(key.covered) && chosen(key)) kernels.push_back(Shown(key, alike));
    }
    std::ranges::stable_sort(kernels, std::greater<>(), &AlignedKernel::time);
    return kernels;
  }

  std::vector<AlignedKernel> Otherwise(const PlaceKey& place, size_t side) const {
    return Only(side, [&](const KernelKey& key) { return key.made == place; });
  }

  void FromElsewhere(const PlaceKey& place, size_t side, AlignedPlace& row) const {
    const bool made_by_other_alone = row.kernels[side].empty() && !row.kernels[1 - side].empty() &&
                                     row.kernels[1 - side][0].made == row.place;
    if (!made_by_other_alone) return;
    row.kernels[side] =
        Only(side, [&](const KernelKey& key) { return key.covered.contains(place); });
  }

  std::vector<AlignedMemory> Memory() {
    std::map<std::tuple<std::string, PlaceKey>, AlignedMemory> rows;
    for (size_t side = 0; side < 2; ++side) {
      for (const isa::LiveArray& array : reports_[side]->memory_at_peak.arrays) {
        // The scope of an argument is its name.
        const bool in_program = !array.source.empty();
        const PlaceKey key = places_.Add(
            {in_program ? ScopeText(ScopesOf(array.scope)) : array.scope, array.source});
        AlignedMemory& row = rows[{array.owner, key}];
        row.owner = array.owner;
        row.bytes[side] += array.bytes;
      }
    }
    std::vector<AlignedMemory> memory;
    for (auto& [key, row] : rows) {
      row.place = places_.NameOf(std::get<1>(key));
      memory.push_back(std::move(row));
    }
    std::ranges::stable_sort(memory, std::greater<>(), [](const AlignedMemory& row) {
      return std::max(row.Change(), Bytes(0) - row.Change());
    });
    return memory;
  }

  void FillTotals(Alignment& result) const {
    std::map<std::string, Both<KindTotals>> kinds;
    for (size_t side = 0; side < 2; ++side) {
      result.step[side] = reports_[side]->step_time;
      result.peak[side] = reports_[side]->peak.hbm();
      for (const AlignedPlace& row : result.places) {
        for (const OpPart part : kOpParts) {
          result.totals[side].of[static_cast<size_t>(part)] += row.times[side].In(part);
        }
        result.totals[side].kernels += row.times[side].kernels;
      }
      const PlacedProgram& program = Program(side);
      for (const PlacedOp& op : program.ops) {
        if (op.collective < 0) continue;
        const PlacedCollective& how = program.collectives[op.collective];
        KindTotals& kind = kinds[how.kind][side];
        kind.count += op.count;
        if (how.asynchronous) kind.asynchronous += op.count;
        kind.bytes += how.bytes * op.count;
        kind.waited += op.time;
      }
    }
    result.kinds.assign(kinds.begin(), kinds.end());
  }

  Both<const Report*> reports_;
  PlaceTable places_;
  Both<Kernels> kernels_;
  Both<std::map<PlaceKeys, std::set<PlaceKey>>> made_;  // where kernels that cover these are made
  std::map<PlaceKey, PlaceSides> rows_;
};

// Whether at least half of the places of either are those of the other, too.
bool ShareMostPlaces(const Report& a, const Report& b) {
  PlaceTable table(AlignBy::kScopeAndSource);
  Both<PlaceKeys> keys;
  for (size_t side = 0; side < 2; ++side) {
    for (const SourcePlace& place : (side == 0 ? a : b).placed.places) {
      if (!place.source.empty()) keys[side].insert(table.Add(place));
    }
  }
  const auto shared = std::ranges::count_if(
      keys[0], [&keys](const PlaceKey& key) { return keys[1].contains(key); });
  return shared > 0 && 2 * shared >= std::ssize(keys[0]) && 2 * shared >= std::ssize(keys[1]);
}

// Dumps of the TPU compiler have names of their own: of two programs alone, their places tell.
bool IsSameProgram(const Compared& a, const Compared& b, bool alone) {
  if (!a.report || !b.report || a.report->config != b.report->config) return false;
  return a.report->workload == b.report->workload ||
         (alone && ShareMostPlaces(*a.report, *b.report));
}

}  // namespace

Picoseconds PartTimes::Sum() const { return std::accumulate(of.begin(), of.end(), Picoseconds(0)); }

Alignment Align(const Both<const Report*>& reports, const Both<std::string>& labels, AlignBy by) {
  Alignment alignment = Aligner(reports, by).Run();
  alignment.labels = labels;
  alignment.compiled = reports[0]->placed.by_tpu_compiler ? 0 : 1;
  return alignment;
}

std::vector<Alignment> Alignments(const std::vector<Compared>& compared, AlignBy by) {
  std::vector<Alignment> alignments;
  const auto compiled = [](const Compared& c) {
    return c.report && c.report->placed.by_tpu_compiler;
  };
  for (size_t i = 0; i < compared.size(); ++i) {
    if (!compiled(compared[i])) continue;
    const auto other = std::ranges::find_if(compared, [&](const Compared& c) {
      return !compiled(c) && IsSameProgram(compared[i], c, /*alone=*/compared.size() == 2);
    });
    if (other == compared.end()) continue;
    const auto j = static_cast<size_t>(other - compared.begin());
    const auto [first, second] = std::minmax(i, j);
    alignments.push_back(Align({&*compared[first].report, &*compared[second].report},
                               {LetterOf(first), LetterOf(second)}, by));
  }
  return alignments;
}

}  // namespace tpusim::results
