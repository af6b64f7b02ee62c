#include "workloads/hlo/analysis/alias.h"

#include <algorithm>

#include "workloads/hlo/analysis/async.h"
#include "workloads/hlo/analysis/in_place.h"
#include "workloads/hlo/analysis/underlying.h"
#include "workloads/hlo/ir/opcode.h"

namespace tpusim::hlo {
namespace {

int64_t LeafCount(const Shape& shape) {
  int64_t count = shape.IsTuple() ? 0 : 1;
  for (const Shape& element : shape.tuple) count += LeafCount(element);
  return count;
}

// The first leaf of element `index`.
int64_t FirstLeafOf(const Shape& tuple, int64_t index) {
  int64_t leaf = 0;
  for (int64_t k = 0; k < index; ++k) leaf += LeafCount(tuple.tuple[k]);
  return leaf;
}

// The index of the result in the tuple of a start. The other of the first two elements names the
// operands; the rest are flags.
int64_t ResultElement(const Instruction& start) {
  return start.opcode() == Opcode::kCopyStart ? 0 : 1;
}

// The start of an all-reduce has its result, not what it works on as well.
bool StartsInTuple(const Instruction& i) {
  return IsAsyncStart(i.opcode()) && i.opcode() != Opcode::kAllReduceStart &&
         i.shape().tuple.size() > 1;
}

}  // namespace

AliasAnalysis::AliasAnalysis(const Computation& computation) {
  const std::vector<Instruction*> order = computation.PostOrder();
  places_.reserve(order.size());
  std::vector<int32_t> arrays;
  for (const Instruction* i : order) {
    arrays.clear();
    ArraysOfValue place;
    place.made.first = static_cast<int32_t>(arrays_.size());
    AddArrays(*i, arrays);
    place.made.last = static_cast<int32_t>(arrays_.size());
    place.at = static_cast<int32_t>(leaves_.size());
    place.count = static_cast<int32_t>(arrays.size());
    leaves_.insert(leaves_.end(), arrays.begin(), arrays.end());
    places_.emplace(i, place);
    if (i->shape().IsTuple() || arrays[0] == kNoArray) continue;
    const Instruction*& name = arrays_[arrays[0]].name;
    if (name == nullptr) name = i;
  }
  for (Instruction* i : order) {
    if (OnlyNames(*i) || i->opcode() == Opcode::kAsyncUpdate) continue;
    if (IsAsyncDone(i->opcode())) {
      // The start has read its operands; the done waits for what the start makes.
      const ArrayRange made = MadeBy(&StartOf(*i));
      for (int32_t a = made.first; a < made.last; ++a) AddReader({&a, 1}, i);
      continue;
    }
    for (const Instruction* operand : i->operands()) AddReader(ArraysOf(operand), i);
    Instruction* done = IsAsyncStart(i->opcode()) ? DoneOf(*i) : nullptr;
    if (done == nullptr) continue;
    for (const Instruction* operand : i->operands()) AddReader(ArraysOf(operand), done);
  }
  for (const int32_t a : ArraysOf(computation.root())) {
    if (a != kNoArray) arrays_[a].lives_out = true;
  }
}

int32_t AliasAnalysis::Make(const Instruction& i, int64_t leaf, const Shape& shape, int32_t takes) {
  ArrayValue& array = arrays_.emplace_back();
  array.made_by = &i;
  array.leaf = leaf;
  array.shape = &shape;
  array.takes = takes;
  return static_cast<int32_t>(arrays_.size()) - 1;
}

void AliasAnalysis::AddArrays(const Instruction& i, std::vector<int32_t>& arrays) {
  const auto append = [&](std::span<const int32_t> more) {
    arrays.insert(arrays.end(), more.begin(), more.end());
  };
  if (i.opcode() == Opcode::kTuple) {
    for (const Instruction* o : i.operands()) append(ArraysOf(o));
    return;
  }
  if (i.opcode() == Opcode::kGetTupleElement) {
    const Shape& tuple = i.operand(0)->shape();
    const int64_t first = FirstLeafOf(tuple, i.attrs().tuple_index());
    append(ArraysOf(i.operand(0)).subspan(first, LeafCount(i.shape())));
    return;
  }
  if (NamesOperand(i) || i.opcode() == Opcode::kAsyncUpdate) return append(ArraysOf(i.operand(0)));
  if (i.opcode() == Opcode::kWhile) return AddLoop(i, arrays);
  if (StartsInTuple(i)) return AddStart(i, arrays);
  const std::vector<const Shape*> leaves = Leaves(i.shape());
  // The arrays whose buffers the results take, by leaf.
  std::vector<int32_t> taken(leaves.size(), kNoArray);
  if (IsAsyncDone(i.opcode())) {
    const Instruction& start = StartOf(i);
    size_t first = 0;
    if (StartsInTuple(start)) first = FirstLeafOf(start.shape(), ResultElement(start));
    const std::span<const int32_t> made = ArraysOf(&start);
    for (size_t n = 0; n < taken.size() && first + n < made.size(); ++n) taken[n] = made[first + n];
  } else {
    for (const InPlaceResult& result : InPlaceResults(i)) {
      taken[result.leaf] = ArraysOf(i.operand(result.operand))[0];
    }
  }
  for (size_t n = 0; n < leaves.size(); ++n) {
    arrays.push_back(Make(i, static_cast<int64_t>(n), *leaves[n], taken[n]));
  }
}

// An element that the body forwards is the initial value itself, if the initial tuple is visible.
void AliasAnalysis::AddLoop(const Instruction& loop, std::vector<int32_t>& arrays) {
  const Instruction* initial = loop.operand(0);
  const std::span<const int32_t> before = ArraysOf(initial);
  while (NamesOperand(*initial)) initial = initial->operand(0);
  const bool seen = initial->opcode() == Opcode::kTuple;
  const std::vector<const Shape*> leaves = Leaves(loop.shape());
  const auto elements = static_cast<int64_t>(loop.shape().tuple.size());
  for (int64_t e = 0, leaf = 0; e < std::max<int64_t>(1, elements); ++e) {
    const int64_t count = elements == 0 ? std::ssize(leaves) : LeafCount(loop.shape().tuple[e]);
    const bool invariant = seen && e < elements && ForwardsElement(loop, e);
    for (const int64_t end = leaf + count; leaf < end; ++leaf) {
      const int32_t started = before[leaf];
      arrays.push_back(invariant || started == kNoArray ? started
                                                        : Make(loop, leaf, *leaves[leaf], started));
    }
  }
}

void AliasAnalysis::AddStart(const Instruction& start, std::vector<int32_t>& arrays) {
  const Shape& shape = start.shape();
  arrays.assign(LeafCount(shape), kNoArray);
  const int64_t result = ResultElement(start);
  int64_t at = FirstLeafOf(shape, result);
  for (const Shape* leaf : Leaves(shape.tuple[result])) {
    arrays[at] = Make(start, at, *leaf);
    ++at;
  }
  at = FirstLeafOf(shape, 1 - result);
  const int64_t end = at + LeafCount(shape.tuple[1 - result]);
  for (const Instruction* o : start.operands()) {
    for (const int32_t a : ArraysOf(o)) {
      if (at < end) arrays[at++] = a;
    }
  }
}

std::span<const int32_t> AliasAnalysis::ArraysOf(const Instruction* value) const {
  const ArraysOfValue& place = places_.at(value);
  return {leaves_.data() + place.at, static_cast<size_t>(place.count)};
}

int32_t AliasAnalysis::OwnerOf(int32_t array) const {
  while (arrays_[array].takes != kNoArray) array = arrays_[array].takes;
  return array;
}

void AliasAnalysis::AddReader(std::span<const int32_t> arrays, Instruction* reader) {
  for (const int32_t a : arrays) {
    if (a == kNoArray) continue;
    std::vector<Instruction*>& readers = arrays_[a].readers;
    if (readers.empty() || readers.back() != reader) readers.push_back(reader);
  }
}

const ArrayValue* AliasAnalysis::ArrayOf(const Instruction* value) const {
  const auto place = places_.find(value);
  if (place == places_.end() || value->shape().IsTuple()) return nullptr;
  const int32_t array = leaves_[place->second.at];
  return array == kNoArray ? nullptr : &arrays_[array];
}

const Instruction* AliasAnalysis::Of(const Instruction* value) const {
  const ArrayValue* array = ArrayOf(value);
  return array == nullptr ? value : array->name;
}

const std::vector<Instruction*>& AliasAnalysis::ReadersOf(const Instruction* value) const {
  static const auto* const none = new std::vector<Instruction*>();
  const ArrayValue* array = ArrayOf(value);
  return array == nullptr ? *none : array->readers;
}

const AliasAnalysis& ModuleAliases::Of(const Computation& computation) {
  std::unique_ptr<AliasAnalysis>& known = known_[&computation];
  if (known == nullptr) known = std::make_unique<AliasAnalysis>(computation);
  return *known;
}

bool AliasAnalysis::LivesOut(const Instruction* value) const {
  const ArrayValue* array = ArrayOf(value);
  return array != nullptr && array->lives_out;
}

}  // namespace tpusim::hlo
