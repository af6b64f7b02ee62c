#include "workloads/passes/fusion/price.h"

#include <algorithm>

#include "models/timing/kernel_steps.h"
#include "models/timing/kernel_time.h"
#include "models/timing/kernel_timing.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/kernels/kernel_view.h"
#include "workloads/kernels/product.h"
#include "workloads/kernels/whole_rows.h"

namespace tpusim::passes::fusion {

using hlo::Instruction;
using hlo::Opcode;

namespace {

// Sides of a product that a value is on the way to; an input may also be read beside it.
constexpr uint8_t kLhs = 1, kRhs = 2, kBeside = 4;

// Blocks of a product are about as large: what its other side is cut into. The tile
// search decides later; only how often an operand is computed again depends on it.
constexpr int64_t kTypicalBlock = 1024;

}  // namespace

Pricing::Pricing(const Graph& graph, const target::Target& target)
    : graph_(graph), target_(target) {
  const size_t n = graph.instructions.size();
  has_rule_.resize(n, 0);
  work_.resize(n);
  bytes_.resize(n, Bytes(0));
  registers_.resize(n, 0);
  member_at_.resize(n, 0);
  input_at_.resize(n, 0);
  side_.resize(n, 0);
  read_from_.resize(n, 0);
  needed_.resize(n);
  spreads_rows_.resize(n, 0);
  may_be_input_.resize(n, 0);
  first_use_.resize(n, 0);
  for (size_t i = 0; i < n; ++i) {
    const Instruction& instruction = *graph.instructions[i];
    for (const hlo::Shape* leaf : hlo::Leaves(instruction.shape())) {
      if (!leaf->IsArray()) continue;
      bytes_[i] += target.PaddedSize(*leaf);
      registers_[i] += static_cast<double>(kernels::VectorRegisters(target, *leaf));
    }
    spreads_rows_[i] = kernels::ReductionSpreadBy(instruction, target.policy()) != nullptr ? 1 : 0;
    const hlo::Shape& shape = instruction.shape();
    may_be_input_[i] = shape.IsArray() && !shape.IsScalar() && graph.parts[i] != Part::kFree;
    if (graph.parts[i] == Part::kNone) continue;
    first_use_[i] = uses_.size();
    for (size_t o = 0; o < graph.operands[i].size(); ++o) {
      uses_.emplace_back(instruction, o, target);
    }
    const auto work = kernels::VectorWorkOf(instruction, target);
    if (!work.ok()) continue;
    if (graph.parts[i] == Part::kProduct && !kernels::ProductOf(instruction, target).ok()) continue;
    has_rule_[i] = 1;
    work_[i] = *work;
  }
}

void Pricing::Touch(int value) {
  if (member_at_[value] == stamp_ || may_be_input_[value] == 0 || input_at_[value] == stamp_) {
    return;
  }
  input_at_[value] = stamp_;
  inputs_.push_back(value);
}

int64_t Pricing::CountInputs(std::span<const int> members) {
  ++stamp_;
  inputs_.clear();
  for (int m : members) member_at_[m] = stamp_;
  for (int m : members) {
    for (int operand : graph_.operands[m]) Touch(operand);
  }
  return static_cast<int64_t>(inputs_.size());
}

// The value that members' bitcasts rename.
int Pricing::Storage(int value) const {
  while (member_at_[value] == stamp_ && graph_.At(value).opcode() == Opcode::kBitcast) {
    value = graph_.operands[value][0];
  }
  return value;
}

// How much of every member and input the roots need.
void Pricing::FindShares(std::span<const int> members, std::span<const int> roots) {
  for (int input : inputs_) needed_[input].Clear();
  for (int m : members) needed_[m].Clear();
  for (int root : roots) needed_[root].Whole();
  for (auto m = members.rbegin(); m != members.rend(); ++m) {
    const double share = needed_[*m].value();
    const std::vector<int>& operands = graph_.operands[*m];
    for (size_t o = 0; o < operands.size(); ++o) {
      if (member_at_[operands[o]] == stamp_ || input_at_[operands[o]] == stamp_) {
        const bool in_memory = input_at_[Storage(operands[o])] == stamp_;
        needed_[operands[o]].AddUse(uses_[first_use_[*m] + o], share, in_memory);
      }
    }
  }
}

// Which members lead to which operand of the product, and from where inputs are read.
void Pricing::MarkSides(std::span<const int> members, int product) {
  for (int input : inputs_) read_from_[input] = 0;
  for (auto m = members.rbegin(); m != members.rend(); ++m) {
    const std::vector<int>& operands = graph_.operands[*m];
    for (size_t o = 0; o < operands.size(); ++o) {
      const uint8_t side = *m == product ? (o == 0 ? kLhs : kRhs) : side_[*m];
      if (member_at_[operands[o]] == stamp_) {
        side_[operands[o]] |= side;
      } else {
        read_from_[operands[o]] |= side != 0 ? side : kBeside;
      }
    }
  }
}

Price Pricing::Of(std::span<const int> members, std::span<const int> roots) {
  members_priced_ += static_cast<int64_t>(members.size());
  CountInputs(members);
  kernel_.windows.clear();
  kernel_.grid.clear();
  kernel_.block = {};
  kernels::VectorWork work;
  Bytes moved(0);
  const auto add_window = [&](isa::WindowKind kind, Bytes bytes) {
    if (bytes == Bytes(0)) return;
    isa::Window& w = kernel_.windows.emplace_back();
    w.kind = kind;
    w.bytes = bytes;
    moved += bytes;
  };
  const auto product = std::find_if(members.begin(), members.end(),
                                    [&](int m) { return graph_.Is(m, Part::kProduct); });
  double lhs_times = 1, rhs_times = 1;
  for (int m : members) side_[m] = 0;
  if (product != members.end()) {
    const Instruction& dot = graph_.At(*product);
    const auto p = kernels::ProductOf(dot, target_);
    if (p.ok() && !kernels::RunsOnVectorUnits(dot)) {
      const int64_t extent = std::max<int64_t>(1, p->batch) * p->repeats;
      kernel_.block.mxu = {p->m, p->k, p->n, p->format, extent};
      lhs_times = static_cast<double>(CeilDiv(p->n, kTypicalBlock));
      rhs_times = static_cast<double>(CeilDiv(p->m, kTypicalBlock));
    }
    MarkSides(members, *product);
  }
  FindShares(members, roots);
  for (int input : inputs_) {
    // The blocks of an operand are others than those of the result.
    const bool twice = product != members.end() && (read_from_[input] & kBeside) != 0 &&
                       (read_from_[input] & (kLhs | kRhs)) != 0;
    const double share = needed_[input].value();
    const Bytes needed = timing::Scaled(bytes_[input], share);
    add_window(isa::WindowKind::kInput, needed * (twice ? 2 : 1));
    work.load += registers_[input] * share;
    if (hlo::BitWidth(graph_.At(input).shape().element_type) < 32) {
      work.valu += registers_[input] * share;
    }
  }
  for (int root : roots) {
    // In the buffer of what it updates, unless that is made here as well.
    const bool update =
        graph_.Is(root, Part::kUpdate) && input_at_[Storage(graph_.operands[root][0])] == stamp_;
    const int written = update ? graph_.operands[root][1] : root;
    add_window(isa::WindowKind::kOutput, bytes_[written]);
    work.store += registers_[written];
    const hlo::Shape& shape = graph_.At(root).shape();
    if (shape.IsArray() && hlo::BitWidth(shape.element_type) < 32) work.valu += registers_[written];
  }
  const bool waits =
      product != members.end() && std::any_of(members.begin(), members.end(), [&](int m) {
        return spreads_rows_[m] != 0 && member_at_[graph_.operands[m][0]] == stamp_;
      });
  kernels::VectorWork after;
  for (int m : members) {
    double times = 1;
    if ((side_[m] & kLhs) != 0) times = std::max(times, lhs_times);
    if ((side_[m] & kRhs) != 0) times = std::max(times, rhs_times);
    (waits && side_[m] == 0 ? after : work) += work_[m] * (times * needed_[m].value());
  }
  const isa::MxuWork mxu = kernel_.block.mxu;
  kernel_.block = kernels::BlockOf(work, 1);
  kernel_.block.mxu = mxu;
  // What needs a whole row of the product begins when its block is complete.
  if (waits) {
    kernel_.block.latency = timing::TimeBlock(target_.chip(), kernels::BlockOf(after, 1)).vpu;
  }
  return {timing::KernelTimeBound(target_.chip(), kernel_), moved};
}

}  // namespace tpusim::passes::fusion
