// Costs of what applies a scalar computation many times, of sorting and of
// indexed access.
#include <algorithm>

#include "configs/status_macros.h"
#include "fmt/format.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/rules/cost_rules.h"
#include "workloads/hlo/rules/whole_window.h"

namespace tpusim::hlo::cost_rules {
// N values are reduced to one by N - 1 calls, and the initial value is free
// (as in XLA's HloCostAnalysis).
Result Reduce(const Instruction& i, const CalleeCosts& callees) {
  return FullApplied(i, std::max<int64_t>(0, Elements(i.operand(0)->shape()) - Elements(i.shape())),
                     callees);
}

namespace {

int64_t WindowElements(const Instruction& i) {
  int64_t elements = 1;
  for (const WindowDim& d : GetWindow(i)) elements = Mul(elements, d.size);
  return elements;
}

// Counts the elements that a position of the window combines: all of the window, but two along a
// dimension in which it runs (the result before and one element) or sees the whole (one element
// and what all positions share).
int64_t CombinedElements(const Instruction& i) {
  const std::vector<WindowDim> window = GetWindow(i);
  int64_t elements = 1;
  for (size_t d = 0; d < window.size(); ++d) {
    const int64_t bound = i.operand(0)->shape().dims[d];
    const bool once = IsRunning(bound, window[d]) || SeesWhole(bound, window[d]);
    elements = Mul(elements, once ? 2 : window[d].size);
  }
  return elements;
}

}  // namespace

Result ReduceWindow(const Instruction& i, const CalleeCosts& callees) {
  return FullApplied(i, Mul(std::max<int64_t>(0, CombinedElements(i) - 1), Elements(i.shape())),
                     callees);
}

// Each source element: the window's winner by comparisons, then one scatter.
Result SelectAndScatter(const Instruction& i, const CalleeCosts& callees) {
  const int64_t sources = Elements(i.operand(1)->shape());
  ASSIGN_OR_RETURN(
      const Cost select,
      Applied(i, 0, Mul(sources, std::max<int64_t>(0, WindowElements(i) - 1)), callees));
  ASSIGN_OR_RETURN(const Cost scatter, Applied(i, 1, sources, callees));
  return Full(i, Add(select.flops.value(), scatter.flops.value()),
              Add(select.transcendentals.value(), scatter.transcendentals.value()));
}

Result Map(const Instruction& i, const CalleeCosts& callees) {
  return FullApplied(i, Elements(i.shape()), callees);
}

// Reads what it gives, and the indices.
Result Gather(const Instruction& i, const CalleeCosts&) {
  Cost cost = Moves(i.shape().ByteSize());
  cost.bytes_read = Add(cost.bytes_read, i.operand(1)->shape().ByteSize());
  return cost;
}

// In place: the touched part of the operands is as large as the updates, and is
// read and written.
Result Scatter(const Instruction& i, const CalleeCosts& callees) {
  const size_t n = i.operands().size() / 2;
  Bytes updates(0);
  for (size_t k = n + 1; k < i.operands().size(); ++k)
    updates = Add(updates, i.operand(k)->shape().ByteSize());
  ASSIGN_OR_RETURN(Cost cost, Applied(i, 0, Elements(i.operand(n + 1)->shape()), callees));
  cost.bytes_read = Add(Add(updates, updates), i.operand(n)->shape().ByteSize());
  cost.bytes_written = updates;
  return cost;
}

Result Sort(const Instruction& i, const CalleeCosts&) {
  const int64_t n = Elements(i.operand(0)->shape());
  return Full(i, Mul(n, CeilLog2(n)));
}

// A heap of k: one walk down per element.
Result TopK(const Instruction& i, const CalleeCosts&) {
  return Full(i, Mul(Elements(i.operand(0)->shape()), CeilLog2(i.attrs().k() + 1)));
}

}  // namespace tpusim::hlo::cost_rules
