#include <functional>
#include <queue>

#include "configs/status_macros.h"
#include "workloads/hlo/analysis/in_place.h"
#include "workloads/hlo/analysis/underlying.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/passes/copies/copies.h"

namespace tpusim::passes {
namespace {

using hlo::Instruction;

class UpdateOrder {
 public:
  UpdateOrder(const hlo::Computation& computation, const hlo::AliasAnalysis& storage)
      : order_(computation.PostOrder()), storage_(storage), nodes_(order_.size()) {
    for (size_t n = 0; n < order_.size(); ++n) number_[order_[n]] = static_cast<int64_t>(n);
    for (size_t n = 0; n < order_.size(); ++n) AddInstruction(static_cast<int64_t>(n));
  }

  std::unordered_map<const Instruction*, int64_t> Run() {
    for (size_t n = 0; n < nodes_.size(); ++n) {
      if (nodes_[n].waits_for == 0) MakeReady(static_cast<int64_t>(n));
    }
    std::unordered_map<const Instruction*, int64_t> place;
    while (place.size() < nodes_.size()) {
      const int64_t n = Next();
      if (nodes_[n].placed) continue;
      nodes_[n].placed = true;
      const auto next = static_cast<int64_t>(place.size());
      place[order_[n]] = next;
      for (const int64_t b : nodes_[n].reads) CountRead(b);
      for (const int64_t user : nodes_[n].users) {
        if (--nodes_[user].waits_for == 0) MakeReady(user);
      }
    }
    return place;
  }

 private:
  using Earliest = std::priority_queue<int64_t, std::vector<int64_t>, std::greater<>>;

  struct OrderedInstruction {
    std::vector<int64_t> users;    // that wait for it
    std::vector<int64_t> reads;    // updated buffers, by number
    std::vector<int64_t> updates;  // a subset of `reads`
    int64_t waits_for = 0;
    bool ready = false, placed = false;
  };
  // An array that instructions update in place.
  struct Updated {
    std::vector<int64_t> updates;  // instructions
    int64_t unread = 0;            // readers to come, the updates among them
  };

  void AddInstruction(int64_t n) {
    Instruction* i = order_[static_cast<size_t>(n)];
    const auto wait_for = [&](const Instruction* before) {
      nodes_[number_.at(before)].users.push_back(n);
      ++nodes_[n].waits_for;
    };
    for (const Instruction* operand : i->operands()) wait_for(operand);
    for (const Instruction* before : i->control_predecessors()) wait_for(before);
    for (const Overwrite& overwrite : OverwritesOf(*i)) {
      const int64_t b = BufferOf(storage_.Of(overwrite.value()));
      buffers_[b].updates.push_back(n);
      nodes_[n].updates.push_back(b);
    }
  }

  int64_t BufferOf(const Instruction* storage) {
    const auto [at, is_new] =
        numbers_of_buffers_.emplace(storage, static_cast<int64_t>(buffers_.size()));
    if (!is_new) return at->second;
    Updated& buffer = buffers_.emplace_back();
    for (const Instruction* reader : storage_.ReadersOf(storage)) {
      nodes_[number_.at(reader)].reads.push_back(at->second);
      ++buffer.unread;
    }
    return at->second;
  }

  // Whether all other readers of the arrays that it updates have run.
  bool ReadsLast(int64_t n) const {
    for (const int64_t b : nodes_[n].updates) {
      if (buffers_[b].unread > 1) return false;
    }
    return true;
  }

  void MakeReady(int64_t n) {
    nodes_[n].ready = true;
    (ReadsLast(n) ? now_ : later_).push(n);
  }

  void CountRead(int64_t b) {
    if (--buffers_[b].unread != 1) return;
    for (const int64_t n : buffers_[b].updates) {
      if (nodes_[n].ready && !nodes_[n].placed && ReadsLast(n)) now_.push(n);
    }
  }

  int64_t Next() {
    Earliest& queue = now_.empty() ? later_ : now_;
    TPUSIM_CHECK(!queue.empty(), "instructions wait for each other");
    const int64_t n = queue.top();
    queue.pop();
    return n;
  }

  const std::vector<Instruction*> order_;
  const hlo::AliasAnalysis& storage_;
  std::vector<OrderedInstruction> nodes_;
  std::unordered_map<const Instruction*, int64_t> number_;  // looked up, never iterated
  std::unordered_map<const Instruction*, int64_t> numbers_of_buffers_;
  std::vector<Updated> buffers_;
  Earliest now_, later_;
};

}  // namespace

std::vector<Overwrite> OverwritesOf(Instruction& i) {
  std::vector<Overwrite> overwrites;
  for (const hlo::InPlaceResult& result : hlo::InPlaceResults(i)) {
    overwrites.push_back({&i, static_cast<size_t>(result.operand)});
  }
  if (i.opcode() != hlo::Opcode::kWhile) return overwrites;
  Instruction* initial = i.operand(0);
  if (initial->opcode() != hlo::Opcode::kTuple) return overwrites;
  for (size_t n = 0; n < initial->operands().size(); ++n) {
    const hlo::Shape& shape = initial->operand(n)->shape();
    if (!shape.IsArray() || shape.IsScalar()) continue;
    if (!hlo::ForwardsElement(i, static_cast<int64_t>(n))) overwrites.push_back({initial, n});
  }
  return overwrites;
}

std::unordered_map<const Instruction*, int64_t> OrderWithLateUpdates(
    const hlo::Computation& computation, const hlo::AliasAnalysis& storage) {
  return UpdateOrder(computation, storage).Run();
}

}  // namespace tpusim::passes
