// Bounds of candidates on a chip.
//
// A bound is where the tile search starts from: the launch, and the longer of all vector and
// matrix work and all bytes from and to HBM, every array moved and everything computed once.
// What every instruction asks of the vector slots and how large arrays are in memory is looked
// up once.

#include <algorithm>
#include <cstdint>

#include "configs/status_macros.h"
#include "models/timing/kernel_steps.h"
#include "models/timing/kernel_time.h"
#include "models/timing/kernel_timing.h"
#include "workloads/cost/candidate.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/kernels/vector_work/vector_cost.h"
#include "workloads/kernels/view/kernel_view.h"
#include "workloads/kernels/view/needed_share.h"
#include "workloads/kernels/view/product.h"
#include "workloads/kernels/view/whole_rows.h"

namespace tpusim::cost {
namespace {

using hlo::Instruction;
using hlo::Opcode;

class ChipCandidateCosts : public CandidateCosts {
 public:
  ChipCandidateCosts(const KernelGraph& graph, const target::Target& target);

  bool HasRule(int instruction) const override { return has_rule_[instruction] != 0; }
  Price BoundOf(const Candidate& candidate) override;

 private:
  int Storage(int value) const;
  void FindShares(const Candidate& candidate);
  void MarkWayIn(std::span<const int> members, int product);

  const KernelGraph& graph_;
  const target::Target& target_;
  std::vector<char> has_rule_;
  std::vector<kernels::VectorWork> work_;
  std::vector<Bytes> bytes_;             // of the whole array
  std::vector<isa::MemorySpace> space_;  // that it is in
  std::vector<double> registers_;        // of 32-bit elements
  std::vector<char> spreads_rows_;       // kernels::ReductionSpreadBy
  // Uses of the operands of what may be in a kernel, from first_use_ of the instruction on.
  std::vector<kernels::Use> uses_;
  std::vector<size_t> first_use_;
  // Scratch of one bound.
  KernelInputs reads_;
  std::vector<char> on_way_in_;  // a member to the product
  std::vector<kernels::NeededShare> needed_;
  isa::Kernel kernel_;
};

ChipCandidateCosts::ChipCandidateCosts(const KernelGraph& graph, const target::Target& target)
    : graph_(graph), target_(target), reads_(graph) {
  const size_t n = graph.instructions.size();
  has_rule_.resize(n, 0);
  work_.resize(n);
  bytes_.resize(n, Bytes(0));
  space_.resize(n);
  registers_.resize(n, 0);
  on_way_in_.resize(n, 0);
  needed_.resize(n);
  spreads_rows_.resize(n, 0);
  first_use_.resize(n, 0);
  for (size_t i = 0; i < n; ++i) {
    const Instruction& instruction = *graph.instructions[i];
    for (const hlo::Shape* leaf : hlo::Leaves(instruction.shape())) {
      if (!leaf->IsArray()) continue;
      bytes_[i] += target.PaddedSize(*leaf);
      registers_[i] += static_cast<double>(kernels::VectorRegisters(target, *leaf));
    }
    space_[i] = kernels::SpaceOf(instruction.shape());
    spreads_rows_[i] = kernels::ReductionSpreadBy(instruction, target.policy()) != nullptr ? 1 : 0;
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
    const auto least = kernels::LeastElementwiseCost(instruction, target);
    if (least && !kernels::IsRelayout(instruction)) {
      const kernels::VectorWork whole = *least * registers_[i];
      if (whole.valu < work_[i].valu) work_[i] = whole;
    }
  }
}

// The value that members' bitcasts rename.
int ChipCandidateCosts::Storage(int value) const {
  while (reads_.HasMember(value) && graph_.At(value).opcode() == Opcode::kBitcast) {
    value = graph_.operands[value][0];
  }
  return value;
}

// Finds how much of every member and input the roots need.
void ChipCandidateCosts::FindShares(const Candidate& candidate) {
  const std::span<const int> members = candidate.members;
  for (int input : reads_.last()) needed_[input].Clear();
  for (int m : members) needed_[m].Clear();
  for (int root : candidate.roots) needed_[root].Whole();
  for (auto m = members.rbegin(); m != members.rend(); ++m) {
    const double share = needed_[*m].value();
    const std::vector<int>& operands = graph_.operands[*m];
    for (size_t o = 0; o < operands.size(); ++o) {
      if (reads_.HasMember(operands[o]) || reads_.HasInput(operands[o])) {
        const bool in_memory = reads_.HasInput(Storage(operands[o]));
        needed_[operands[o]].AddUse(uses_[first_use_[*m] + o], share, in_memory);
      }
    }
  }
}

// Marks the members that compute an operand of the product.
void ChipCandidateCosts::MarkWayIn(std::span<const int> members, int product) {
  for (int m : members) on_way_in_[m] = 0;
  for (auto m = members.rbegin(); m != members.rend(); ++m) {
    if (*m != product && on_way_in_[*m] == 0) continue;
    for (int operand : graph_.operands[*m]) on_way_in_[operand] = 1;
  }
}

Price ChipCandidateCosts::BoundOf(const Candidate& candidate) {
  const std::span<const int> members = candidate.members, roots = candidate.roots;
  const std::vector<int>& inputs = reads_.Of(members);
  kernel_.windows.clear();
  kernel_.grid.clear();
  kernel_.block = {};
  kernels::VectorWork work;
  const auto add_window = [&](isa::WindowKind kind, int value, Bytes bytes) {
    if (bytes == Bytes(0)) return;
    isa::Window& w = kernel_.windows.emplace_back();
    w.kind = kind;
    w.space = space_[value];
    w.bytes = bytes;
  };
  const auto product = std::find_if(members.begin(), members.end(),
                                    [&](int m) { return graph_.Is(m, Part::kProduct); });
  bool on_arrays = false;
  if (product != members.end()) {
    const Instruction& dot = graph_.At(*product);
    const auto p = kernels::ProductOf(dot, target_);
    on_arrays = p.ok() && !kernels::RunsOnVectorUnits(dot);
    if (on_arrays) {
      const int64_t extent = std::max<int64_t>(1, p->batch) * p->repeats;
      kernel_.block.mxu = {p->m, p->k, p->n, p->format, extent};
    }
    MarkWayIn(members, *product);
  }
  FindShares(candidate);
  for (int input : inputs) {
    const double share = needed_[input].value();
    add_window(isa::WindowKind::kInput, input, timing::Scaled(bytes_[input], share));
    const hlo::Shape& shape = graph_.At(input).shape();
    work.load += shape.IsArray() ? registers_[input] * share * kernels::PackedShare(shape) : 0;
    // bf16 and int8 operands go to the arrays as they are.
    const bool direct = on_arrays && std::ranges::count(graph_.operands[*product], input) > 0;
    if (!direct && hlo::BitWidth(graph_.At(input).shape().element_type) < 32) {
      work.valu += registers_[input] * share;
    }
  }
  for (int root : roots) {
    // In the buffer of what it updates, unless that is made here as well.
    const bool update =
        graph_.Is(root, Part::kUpdate) && reads_.HasInput(Storage(graph_.operands[root][0]));
    const int written = update ? graph_.operands[root][1] : root;
    add_window(isa::WindowKind::kOutput, root, bytes_[written]);
    const hlo::Shape& shape = graph_.At(root).shape();
    if (!shape.IsArray()) continue;
    const double packed = kernels::PackedShare(shape);
    work.store += packed * registers_[written];
    work.valu += (1 - packed) * registers_[written];
  }
  const bool waits = on_arrays && std::ranges::any_of(members, [&](int m) {
                       return spreads_rows_[m] != 0 && reads_.HasMember(graph_.operands[m][0]);
                     });
  kernels::VectorWork after;
  for (int m : members) {
    (waits && on_way_in_[m] == 0 ? after : work) += work_[m] * needed_[m].value();
  }
  // What a product loads and stores is counted with it.
  for (kernels::VectorWork* beside : {&work, &after}) {
    if (on_arrays) *beside = {.valu = beside->valu, .eup = beside->eup, .xlu = beside->xlu};
  }
  const isa::MxuWork mxu = kernel_.block.mxu;
  kernel_.block = kernels::BlockOf(work, 1);
  kernel_.block.mxu = mxu;
  // What needs a whole row of the product begins when its block is complete.
  if (waits) {
    kernel_.block.latency = timing::TimeBlock(target_.chip(), kernels::BlockOf(after, 1)).vpu;
  }
  const timing::KernelTraffic traffic = timing::TrafficOf(kernel_);
  Picoseconds time = timing::KernelTimeBound(target_.chip(), kernel_);
  if (on_arrays) {
    // Either side of a product may be what is fed to the arrays.
    std::swap(kernel_.block.mxu.m, kernel_.block.mxu.n);
    time = std::min(time, timing::KernelTimeBound(target_.chip(), kernel_));
  }
  return {time, traffic.read + traffic.written};
}

}  // namespace

absl::StatusOr<Price> PriceOfCopy(const hlo::Shape& from, const hlo::Shape& to,
                                  kernels::KernelLibrary& kernels) {
  hlo::Module module("copy");
  hlo::Computation* computation = module.AddComputation("copy");
  module.set_entry(computation);
  Instruction* array = computation->AddParameter(0, from, "array");
  ASSIGN_OR_RETURN(const kernels::KernelCost cost,
                   kernels.CostOf(*computation->Add(Opcode::kCopy, to, {array})));
  return Price{cost.time, cost.moved()};
}

std::unique_ptr<CandidateCosts> CostsOfCandidates(const KernelGraph& graph,
                                                  const target::Target& target) {
  return std::make_unique<ChipCandidateCosts>(graph, target);
}

}  // namespace tpusim::cost
