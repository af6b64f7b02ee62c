#include "workloads/passes/schedule/order_memory.h"

#include <algorithm>

#include "workloads/hlo/analysis/async.h"
#include "workloads/hlo/analysis/in_place.h"
#include "workloads/hlo/analysis/storage.h"
#include "workloads/hlo/ir/opcode.h"

namespace tpusim::passes {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;
using hlo::StorageAnalysis;

// The storage whose buffer this one goes on living in; null: it has a buffer of its own.
const Instruction* GoesOn(const Instruction& storage, const StorageAnalysis& analysis) {
  const bool element = storage.opcode() == Opcode::kGetTupleElement;
  const Instruction& maker = element ? *analysis.Of(storage.operand(0)) : storage;
  const int64_t leaf = element ? storage.attrs().tuple_index() : 0;
  if (maker.opcode() == Opcode::kWhile) {
    const Instruction* initial = analysis.Of(maker.operand(0));
    return element && initial->opcode() == Opcode::kTuple
               ? analysis.Of(initial->operand(static_cast<size_t>(leaf)))
               : nullptr;
  }
  for (const hlo::InPlaceResult& result : hlo::InPlaceResults(maker)) {
    if (result.leaf == leaf) return analysis.Of(maker.operand(result.operand));
  }
  return nullptr;
}

}  // namespace

OrderMemory::OrderMemory(const Computation& computation, const cost::ScheduleGraph& graph,
                         const target::Target& target, const PeakOfComputations& callees)
    : made_(graph.nodes.size()), read_(graph.nodes.size()), inside_(graph.nodes.size()) {
  const StorageAnalysis analysis(computation);
  std::unordered_map<const Instruction*, int> node, value;  // looked up, never iterated
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    node[graph.nodes[n].instruction] = static_cast<int>(n);
  }
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Instruction& i = *graph.nodes[n].instruction;
    for (const Computation* called : i.called()) {
      const auto peak = callees.find(called);
      if (peak != callees.end()) inside_[n] = std::max(inside_[n], peak->second);
    }
    // Each storage once; tuples are what their elements are.
    if (analysis.Of(&i) != &i || !i.shape().IsArray()) continue;
    if (i.opcode() == Opcode::kParameter || i.shape().layout.memory_space != hlo::kHbmSpace) {
      continue;
    }
    const Instruction* before = GoesOn(i, analysis);
    int number = -1;
    if (before != nullptr) {
      const auto known = value.find(before);
      if (known == value.end()) continue;  // an argument's
      number = known->second;
    } else {
      const Instruction* maker = &i;
      if (i.opcode() == Opcode::kGetTupleElement) maker = analysis.Of(i.operand(0));
      if (hlo::IsAsyncDone(i.opcode())) maker = &hlo::StartOf(i);
      if (maker->opcode() == Opcode::kParameter) continue;
      number = static_cast<int>(values_.size());
      values_.push_back({target.PaddedSize(i.shape()), node.at(maker), {}, false});
      made_[node.at(maker)].push_back(number);
    }
    value[&i] = number;
    Value& v = values_[number];
    v.stays = v.stays || analysis.LivesOut(&i);
    for (const Instruction* reader : analysis.ReadersOf(&i)) v.readers.push_back(node.at(reader));
  }
  for (size_t n = 0; n < values_.size(); ++n) {
    std::vector<int>& readers = values_[n].readers;
    std::sort(readers.begin(), readers.end());
    readers.erase(std::unique(readers.begin(), readers.end()), readers.end());
    for (const int reader : readers) read_[reader].push_back(static_cast<int>(n));
  }
}

Bytes OrderMemory::PeakOf(const cost::ScheduleOrder& order) const {
  std::vector<size_t> unread(values_.size());
  for (size_t n = 0; n < values_.size(); ++n) unread[n] = values_[n].readers.size();
  Bytes live(0), peak(0);
  for (const int n : order) {
    for (const int made : made_[n]) live += values_[made].bytes;
    peak = std::max(peak, live + inside_[n]);
    for (const int made : made_[n]) {
      if (unread[made] == 0 && !values_[made].stays) live -= values_[made].bytes;
    }
    for (const int read : read_[n]) {
      if (--unread[read] == 0 && !values_[read].stays) live -= values_[read].bytes;
    }
  }
  return peak;
}

}  // namespace tpusim::passes
