#include "sim/results/report/placed_ops.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "sim/results/report/rollup.h"
#include "sim/results/report/scope.h"

namespace tpusim::results {
namespace {

// Values by number, each once.
template <typename T>
class Numbered {
 public:
  int64_t Of(const T& value) {
    const auto [at, is_new] = numbers_.emplace(value, static_cast<int64_t>(all_.size()));
    if (is_new) all_.push_back(value);
    return at->second;
  }
  std::vector<T> Take() { return std::move(all_); }

 private:
  std::map<T, int64_t> numbers_;
  std::vector<T> all_;
};

isa::SourcePlace WithoutPrimitive(const isa::SourcePlace& place) {
  return {ScopeText(ScopesOf(place.scope)), place.source};
}

// The transfer that an operation starts or waits for, or itself.
size_t OwnerOf(const isa::ProgramInfo& info, size_t op) {
  if (info.ops[op].waits_for >= 0) return static_cast<size_t>(info.ops[op].waits_for);
  if (info.ops[op].starts >= 0) return static_cast<size_t>(info.ops[op].starts);
  return op;
}

OpPart PartOf(const isa::OpInfo& op) {
  if (op.collective >= 0) return OpPart::kCollective;
  if (IsContainer(op)) return OpPart::kRest;
  const bool copies = op.is_async || op.category == "copy" || op.category == "data formatting" ||
                      op.category.ends_with(" host");
  return copies ? OpPart::kCopy : OpPart::kKernel;
}

}  // namespace

std::string_view PartName(OpPart part) {
  static constexpr std::string_view kNames[] = {"kernel", "collective", "copy", "rest"};
  return kNames[static_cast<size_t>(part)];
}

PlacedProgram PlaceOps(const isa::ProgramInfo& info, const sim::Timeline& timeline,
                       const isa::PlacesOfOps& known, bool by_tpu_compiler) {
  std::vector<Picoseconds> times(info.ops.size(), Picoseconds(0));
  for (size_t i = 0; i < info.ops.size(); ++i) {
    const sim::OpTotals& totals = timeline.ops[i];
    if (totals.count == 0) continue;
    // What is in flight beside the main stream takes time where that waits.
    const bool beside = info.ops[i].is_async && info.ops[i].waits_for < 0;
    if (!beside) times[OwnerOf(info, i)] += totals.main;
  }
  Numbered<isa::SourcePlace> places;
  Numbered<PlacedCollective> collectives;
  PlacedProgram program;
  program.by_tpu_compiler = by_tpu_compiler;
  for (size_t i = 0; i < info.ops.size(); ++i) {
    const isa::OpInfo& op = info.ops[i];
    if (timeline.ops[i].count == 0 || OwnerOf(info, i) != i) continue;
    PlacedOp placed{op.name, PartOf(op), 0, {}, timeline.ops[i].count, times[i], -1};
    // A kernel that takes no time is none; a collective may be hidden.
    if (placed.part != OpPart::kCollective && placed.time == Picoseconds(0)) continue;
    isa::SourcePlace place{op.scope, op.source};
    if (const auto of = known.find(op.name); of != known.end()) {
      place = of->second.main;
      for (const isa::SourcePlace& covered : of->second.covered) {
        placed.covered.push_back(places.Of(WithoutPrimitive(covered)));
      }
      std::ranges::sort(placed.covered);
      const auto equal = std::ranges::unique(placed.covered);
      placed.covered.erase(equal.begin(), equal.end());
    }
    placed.place = places.Of(WithoutPrimitive(place));
    if (op.collective >= 0) {
      const isa::CollectiveInfo& c = info.collectives[op.collective];
      placed.collective = static_cast<int32_t>(
          collectives.Of({c.kind, c.algorithm, c.bytes, c.group_size, op.is_async}));
    }
    program.ops.push_back(std::move(placed));
  }
  program.places = places.Take();
  program.collectives = collectives.Take();
  return program;
}

}  // namespace tpusim::results
