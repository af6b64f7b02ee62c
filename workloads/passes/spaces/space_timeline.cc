#include "workloads/passes/spaces/space_timeline.h"

#include <algorithm>
#include <unordered_map>

#include "configs/status_macros.h"
#include "models/timing/kernel_steps.h"
#include "workloads/hlo/analysis/async.h"
#include "workloads/hlo/analysis/execution.h"
#include "workloads/hlo/analysis/in_place.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/rules/branches.h"

namespace tpusim::passes {

using hlo::Computation;
using hlo::Execution;
using hlo::Instruction;

namespace {

int64_t At(size_t position) { return static_cast<int64_t>(position); }

bool IsElement(const Instruction& i) {
  return i.opcode() == hlo::Opcode::kGetTupleElement && !i.has_control_edges();
}

std::vector<Instruction*> NamesFirst(const Computation& computation) {
  const std::vector<Instruction*> order = computation.Order();
  std::unordered_map<const Instruction*, std::vector<Instruction*>> elements;
  for (Instruction* i : order) {
    if (IsElement(*i)) elements[i->operand(0)].push_back(i);
  }
  std::vector<Instruction*> result, next;
  const auto add = [&](Instruction* first) {
    next.push_back(first);
    while (!next.empty()) {
      Instruction* i = next.back();
      next.pop_back();
      result.push_back(i);
      const auto of = elements.find(i);
      if (of != elements.end()) next.insert(next.end(), of->second.rbegin(), of->second.rend());
    }
  };
  for (Instruction* i : order) {
    if (i->opcode() == hlo::Opcode::kParameter) add(i);
  }
  for (Instruction* i : order) {
    if (i->opcode() != hlo::Opcode::kParameter && !IsElement(*i)) add(i);
  }
  return result;
}

}  // namespace

SpaceTimeline::SpaceTimeline(Computation* computation)
    : computation_(computation),
      order_(NamesFirst(*computation)),
      windows_(order_.size()),
      placed_(order_.size()),
      used_(std::ssize(order_)),
      inside_(order_.size()),
      time_(order_.size()),
      spare_(order_.size()) {
  position_.reserve(order_.size());
  for (size_t p = 0; p < order_.size(); ++p) position_[order_[p]] = p;
}

Bytes SpaceTimeline::OwnAt(size_t position) const {
  return used_.Most(At(position), At(position)) - inside_[position];
}

Bytes SpaceTimeline::Outside() const {
  return caller_ == nullptr ? Bytes(0) : caller_->Outside() + caller_->OwnAt(called_at_);
}

void SpaceTimeline::Restart() {
  used_ = buffers::LiveBytes(std::ssize(order_));
  std::fill(inside_.begin(), inside_.end(), Bytes(0));
  for (size_t p = 0; p < order_.size(); ++p) {
    if (const Bytes taken = windows_[p] + placed_[p]; taken > Bytes(0)) {
      used_.Add(At(p), At(p), taken);
    }
  }
  spare_ = time_;
}

bool SpaceTimeline::Fits(size_t first, size_t last, Bytes bytes, Bytes capacity) const {
  return Outside() + used_.Most(At(first), At(last)) + bytes <= capacity;
}

void SpaceTimeline::Occupy(size_t first, size_t last, Bytes bytes) {
  used_.Add(At(first), At(last), bytes);
  PassOnPeak();
}

void SpaceTimeline::PassOnPeak() {
  for (SpaceTimeline* t = this; t->caller_ != nullptr; t = t->caller_) {
    const Bytes peak = t->used_.Most();
    Bytes& inside = t->caller_->inside_[t->called_at_];
    if (peak <= inside) return;
    t->caller_->used_.Add(At(t->called_at_), At(t->called_at_), peak - inside);
    inside = peak;
  }
}

bool SpaceTimeline::WidenWindows(size_t position, Bytes windows, Bytes capacity) {
  const Bytes more = windows - windows_[position];
  if (more <= Bytes(0) || Fits(position, position, more, capacity)) return false;
  windows_[position] = windows;
  return true;
}

std::optional<size_t> SpaceTimeline::StartOfCopy(size_t earliest, size_t use, Picoseconds length,
                                                 Picoseconds longest) const {
  Picoseconds left = length, passed(0);
  for (size_t p = use; p > earliest && passed < longest;) {
    --p;
    if (hlo::IsControlFlow(order_[p]->opcode())) break;
    if (spare_[p] >= left) return p;
    left -= spare_[p];
    passed += time_[p];
  }
  return std::nullopt;
}

size_t SpaceTimeline::EndOfCopy(size_t start, size_t limit, Picoseconds length) const {
  Picoseconds left = length;
  for (size_t p = start + 1; p < limit; ++p) {
    if (spare_[p] >= left) return p;
    left -= spare_[p];
  }
  return limit;
}

Picoseconds SpaceTimeline::SpareTime(size_t first, size_t last, Picoseconds enough) const {
  Picoseconds spare(0);
  for (size_t p = first; p <= last && spare < enough; ++p) spare += spare_[p];
  return std::min(spare, enough);
}

void SpaceTimeline::TakeSpareTime(size_t first, size_t last, Picoseconds length) {
  for (size_t p = first; p <= last && length > Picoseconds(0); ++p) {
    const Picoseconds taken = std::min(spare_[p], length);
    spare_[p] -= taken;
    length -= taken;
  }
}

absl::Status SpaceTimeline::AddTimes(const target::Target& target, cost::CostModel& cost,
                                     bool windows) {
  graph_.limits = cost::LimitsOf(target);
  graph_.nodes.resize(order_.size());
  for (size_t p = 0; p < order_.size(); ++p) {
    const Instruction& i = *order_[p];
    cost::ScheduleNode& node = graph_.nodes[p];
    ASSIGN_OR_RETURN(const Execution execution, hlo::ExecutionOf(i));
    if (!hlo::IsControlFlow(i.opcode())) {
      ASSIGN_OR_RETURN(node.work, cost.WorkOf(i));
      if (windows) windows_[p] = target.chip().vmem.reserved_bytes;  // else what is called has it
    }
    if (execution == Execution::kKernel) {
      if (i.opcode() != hlo::Opcode::kCustomCall) time_[p] = node.work.alone();
      ASSIGN_OR_RETURN(const kernels::KernelCost kernel, cost.KernelOf(i));
      if (windows) windows_[p] = std::max(windows_[p], kernel.windows);
    }
    RETURN_IF_ERROR(cost::SetRole(*order_[p], cost, node));
    if (node.role == cost::ScheduleNode::Role::kDone) {
      node.start = static_cast<int>(position_.at(&hlo::StartOf(i)));
    }
  }
  return absl::OkStatus();
}

void SpaceTimeline::AddPlaced(const hlo::AliasAnalysis& storage, const target::Target& target,
                              int64_t space) {
  const bool is_entry = caller_ == nullptr;
  for (size_t p = 0; p < order_.size(); ++p) {
    Instruction* i = order_[p];
    if (storage.Of(i) != i || !i->shape().IsArray() || i->shape().layout.memory_space != space) {
      continue;
    }
    const bool is_element = i->opcode() == hlo::Opcode::kGetTupleElement;
    const Instruction* maker = is_element ? i->operand(0) : i;
    const bool enters = maker->opcode() == hlo::Opcode::kParameter;
    if (enters && !is_entry) continue;
    size_t first = Has(maker) ? PositionOf(maker) : p;
    if (hlo::IsAsyncDone(maker->opcode())) first = PositionOf(&hlo::StartOf(*maker));
    // An update in place, by a loop or an operation, counts as the value before the update.
    const int64_t leaf = is_element ? i->attrs().tuple_index() : 0;
    bool in_place = maker->opcode() == hlo::Opcode::kWhile;
    for (const hlo::InPlaceResult& result : hlo::InPlaceResults(*maker)) {
      in_place = in_place || result.leaf == leaf;
    }
    if (in_place) ++first;
    size_t last = p;
    for (const Instruction* reader : storage.ReadersOf(i))
      last = std::max(last, PositionOf(reader));
    if (enters) first = 0;
    if (enters || storage.LivesOut(i)) last = order_.size() - 1;
    const Bytes bytes = target.PaddedSize(i->shape());
    for (size_t at = first; at <= last; ++at) placed_[at] += bytes;
  }
}

Bytes SpaceTimeline::MostPlaced() const {
  return placed_.empty() ? Bytes(0) : *std::max_element(placed_.begin(), placed_.end());
}

absl::StatusOr<std::vector<std::unique_ptr<SpaceTimeline>>> SpaceTimelines(
    const hlo::CallGraph& calls, hlo::ModuleAliases& aliases, const target::Target& target,
    cost::CostModel& cost, int64_t space, double loop_weight) {
  ASSIGN_OR_RETURN(const auto executions, hlo::ExecutionsOf(calls, [&](const Instruction& loop) {
                     return cost.TripsOf(loop);
                   }));
  std::vector<std::unique_ptr<SpaceTimeline>> timelines;
  std::unordered_map<const Computation*, SpaceTimeline*> of;
  for (Computation* computation : calls.control()) {
    timelines.push_back(std::make_unique<SpaceTimeline>(computation));
    SpaceTimeline& timeline = *timelines.back();
    of[computation] = &timeline;
    RETURN_IF_ERROR(timeline.AddTimes(target, cost, space == hlo::kVmemSpace));
    timeline.executions_ = static_cast<double>(executions.at(computation));
    const std::vector<Instruction*>& callers = calls.CallersOf(*computation);
    if (!callers.empty()) {
      const Instruction& caller = *callers.front();
      timeline.caller_ = of.at(caller.parent());
      timeline.called_at_ = timeline.caller_->PositionOf(&caller);
      const double weight = caller.opcode() == hlo::Opcode::kWhile ? loop_weight : 1;
      timeline.weight_ = timeline.executions_ == 0 ? 0 : timeline.caller_->weight_ * weight;
    }
    timeline.AddPlaced(aliases.Of(*computation), target, space);
  }
  RestartAll(timelines);
  return timelines;
}

void RestartAll(const std::vector<std::unique_ptr<SpaceTimeline>>& timelines) {
  for (const auto& timeline : timelines) timeline->Restart();
  // What is called last is inside of what was met before.
  for (auto it = timelines.rbegin(); it != timelines.rend(); ++it) {
    if (!(*it)->order().empty()) (*it)->Occupy(0, 0, Bytes(0));
  }
}

}  // namespace tpusim::passes
