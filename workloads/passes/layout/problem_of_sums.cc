// Reductions, windows, sorts: what is combined along a dimension.

#include <algorithm>

#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/kernels/vector_work/vector_cost.h"
#include "workloads/passes/layout/problem_builder.h"

namespace tpusim::passes {

using hlo::Instruction;
using hlo::Opcode;
using hlo::Shape;

void ProblemBuilder::AddReduce(const Instruction& i) {
  const Dims dims = hlo::Dimensions(i);
  const Shape& in = i.operand(0)->shape();
  Dims map(in.dims.size(), -1);
  int64_t next = 0;
  for (int64_t d = 0; d < in.rank(); ++d) {
    if (std::find(dims.begin(), dims.end(), d) == dims.end()) {
      map[static_cast<size_t>(d)] = next++;
    }
  }
  const size_t arrays = i.operands().size() / 2;
  for (size_t n = 0; n < arrays; ++n) {
    Unite(Seen(*i.operand(0)), Seen(*i.operand(n)));
    Unite(Made(i, 0), Made(i, n));
  }
  AddTerm(TermKind::kReduce, Seen(*i.operand(0)), in, dims, static_cast<double>(arrays));
  AddLink(LinkKind::kLanes, Seen(*i.operand(0)), Made(i), in, *hlo::Leaves(i.shape())[0], map);
}

void ProblemBuilder::AddWindow(const Instruction& i) {
  const Shape& in = i.operand(0)->shape();
  for (const Instruction* o : i.operands()) {
    if (o->shape().rank() == in.rank()) Unite(Seen(*i.operand(0)), Seen(*o));
  }
  for (size_t leaf = 0; leaf < problem_.made.at(&i).size(); ++leaf) {
    Unite(Seen(*i.operand(0)), Made(i, leaf));
  }
  const std::vector<hlo::WindowDim> window = hlo::GetWindow(i);
  for (size_t d = 0; d < window.size(); ++d) {
    const int64_t size = window[d].size;
    if (size == 1) continue;
    // A running sum is turned and turned back; a window shifts its neighbours in.
    const bool running = size >= in.dims[d] && window[d].stride == 1;
    const int64_t shifts =
        running ? std::min<int64_t>(2, CeilLog2(size)) : std::min(size - 1, 2 * CeilLog2(size));
    AddTerm(TermKind::kCrossLanes, Seen(*i.operand(0)), in, {static_cast<int64_t>(d)},
            static_cast<double>(shifts));
  }
}

void ProblemBuilder::AddSort(const Instruction& i) {
  const Shape& keys = i.operand(0)->shape();
  const bool full = i.opcode() == Opcode::kSort;
  const int64_t d = full ? hlo::OnlyDimension(i) : keys.rank() - 1;
  for (const Instruction* o : i.operands()) Unite(Seen(*i.operand(0)), Seen(*o));
  for (size_t leaf = 0; leaf < problem_.made.at(&i).size(); ++leaf) {
    Unite(Seen(*i.operand(0)), Made(i, leaf));
  }
  // Rounds whose partners are in other lanes, there and back.
  const int64_t s = CeilLog2(keys.dims[static_cast<size_t>(d)]);
  double rounds = 0;
  for (int64_t j = 0; j < std::min(s, CeilLog2(target_.chip().vpu.lanes)); ++j) {
    rounds += 2 * static_cast<double>(s - j);
  }
  AddTerm(TermKind::kCrossLanes, Seen(*i.operand(0)), keys, {d},
          rounds * static_cast<double>(full ? i.operands().size() : 2));
  if (!full) return;
  // Every round compares pairs of registers and takes one of each, padding included. A comparator
  // without a cost has no kernel either, which is the error that the user sees.
  const absl::StatusOr<kernels::VectorWork> comparator =
      kernels::CallCost(*i.called()[0], target_);
  const double work =
      static_cast<double>(i.operands().size()) + (comparator.ok() ? comparator->valu / 2 : 0);
  AddTerm(TermKind::kRegisters, Seen(*i.operand(0)), keys, {},
          static_cast<double>(kernels::SortRounds(keys.dims[static_cast<size_t>(d)])) * work);
}

}  // namespace tpusim::passes
