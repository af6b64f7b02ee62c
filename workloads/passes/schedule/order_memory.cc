#include <algorithm>

#include "workloads/buffers/live_bytes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/passes/schedule/choose_order.h"

namespace tpusim::passes {

using hlo::Computation;
using hlo::Instruction;

OrderMemory::OrderMemory(const cost::ScheduleGraph& graph, const target::Target& target,
                         const hlo::AliasAnalysis& aliases, const PeakOfComputations& callees)
    : inside_(graph.nodes.size()) {
  std::unordered_map<const Instruction*, int> node;  // looked up, never iterated
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Instruction& i = *graph.nodes[n].instruction;
    node[&i] = static_cast<int>(n);
    for (const Computation* called : i.called()) {
      const auto peak = callees.find(called);
      if (peak != callees.end()) inside_[n] = std::max(inside_[n], peak->second);
    }
  }
  std::vector<int> number(aliases.arrays().size(), -1);  // of buffers, by the array that owns them
  for (size_t a = 0; a < number.size(); ++a) {
    const int32_t owner = aliases.OwnerOf(static_cast<int32_t>(a));
    const hlo::ArrayValue& made = aliases.arrays()[owner];
    if (made.made_by->opcode() == hlo::Opcode::kParameter || !made.shape->IsArray() ||
        made.shape->layout.memory_space != hlo::kHbmSpace) {
      continue;
    }
    if (number[owner] < 0) {
      number[owner] = static_cast<int>(buffers_.size());
      buffers_.push_back({target.PaddedSize(*made.shape), node.at(made.made_by), {}, false});
    }
    Buffer& buffer = buffers_[number[owner]];
    const hlo::ArrayValue& array = aliases.arrays()[a];
    buffer.stays = buffer.stays || array.lives_out;
    for (const Instruction* reader : array.readers) buffer.readers.push_back(node.at(reader));
  }
}

Bytes OrderMemory::PeakOf(const cost::ScheduleOrder& order) const {
  std::vector<int64_t> position(order.size());
  for (size_t p = 0; p < order.size(); ++p) position[order[p]] = static_cast<int64_t>(p);
  std::vector<buffers::HeapBuffer> lives;
  lives.reserve(buffers_.size());
  for (const Buffer& b : buffers_) {
    const int64_t begin = position[b.made_by];
    int64_t last = b.stays ? std::ssize(order) - 1 : begin;
    for (const int reader : b.readers) last = std::max(last, position[reader]);
    lives.push_back({begin, last + 1, b.bytes});
  }
  const std::vector<Bytes> live = buffers::LiveAt(lives, std::ssize(order));
  Bytes peak(0);
  for (size_t p = 0; p < order.size(); ++p) peak = std::max(peak, live[p] + inside_[order[p]]);
  return peak;
}

}  // namespace tpusim::passes
