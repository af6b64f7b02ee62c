// Costs of collectives and other transfers, as far as this device computes,
// reads and writes.
#include <algorithm>

#include "configs/status_macros.h"
#include "fmt/format.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/ragged.h"
#include "workloads/hlo/rules/cost_rules.h"

namespace tpusim::hlo::cost_rules {
namespace {

// Prices `count` applications of a reducer; one operation each if the file does not say which.
absl::StatusOr<Cost> ReducerCost(const Instruction& i, int64_t count, const CalleeCosts& callees) {
  if (i.called().empty()) return Cost{Flops(count), Flops(0), Bytes(0), Bytes(0)};
  return Applied(i, 0, count, callees);
}

int64_t OperandElements(const Instruction& i) {
  int64_t elements = 0;
  for (const Instruction* operand : i.operands()) {
    elements = Add(elements, Elements(operand->shape()));
  }
  return elements;
}

// The data of a send or receive in flight, (data, context, token), or of an
// infeed, (data, token).
Bytes InFlight(const Shape& shape) {
  return shape.tuple.empty() ? Bytes(0) : shape.tuple[0].ByteSize();
}

}  // namespace

Result AllReduce(const Instruction& i, const CalleeCosts& callees) {
  ASSIGN_OR_RETURN(Cost cost, ReducerCost(i, OperandElements(i), callees));
  cost.bytes_read = OperandBytes(i);
  // A start's shape may hold the operands too; the result is as large as they are.
  cost.bytes_written = cost.bytes_read;
  return cost;
}

// Prices a reduce-scatter: of N parts of the operand, each as large as the result, N - 1 are added
// to the device's own, here or on the way.
Result ReduceScatter(const Instruction& i, const CalleeCosts& callees) {
  int64_t kept = 0;
  for (const Shape* leaf : Leaves(i.shape())) kept = Add(kept, Elements(*leaf));
  const int64_t added = std::max<int64_t>(0, OperandElements(i) - kept);
  ASSIGN_OR_RETURN(Cost cost, ReducerCost(i, added, callees));
  cost.bytes_read = OperandBytes(i);
  cost.bytes_written = i.shape().ByteSize();
  return cost;
}

// all-gather-start and collective-permute-start give (operands, results, ...).
Result CollectiveStart(const Instruction& i, const CalleeCosts&) {
  Cost cost = Full(i);
  if (i.shape().tuple.size() >= 2) cost.bytes_written = i.shape().tuple[1].ByteSize();
  return cost;
}

// Reads the rows of the input that are sent and the offsets and sizes; what arrives fills the
// output as far as the data says, at most all of it. The output's old rows are not read.
Result RaggedAllToAll(const Instruction& i, const CalleeCosts&) {
  Cost cost = Full(i);
  cost.bytes_read = cost.bytes_read - i.operand(1)->shape().ByteSize() -
                    RowBytes(i) * std::max<int64_t>(0, i.operand(0)->shape().dims[0] - RowsSent(i));
  return cost;
}

// The whole operand; or a slice of it, which goes into a buffer that is there.
Result InPlacePermute(const Instruction& i, const CalleeCosts&) {
  const auto& sizes = i.attrs().dynamic_slice_sizes();
  if (sizes.empty() || !i.operand(0)->shape().IsArray()) return Full(i);
  int64_t elements = 1;
  for (int64_t size : sizes) elements = Mul(elements, std::max<int64_t>(size, 0));
  elements = std::min(elements, i.operand(0)->shape().ElementCount());
  return Moves(MakeShape(i.operand(0)->shape().element_type, {elements}).ByteSize());
}

// Memory of this side: the other side's belongs to another instruction.
Result Send(const Instruction& i, const CalleeCosts&) {
  return Cost{Flops(0), Flops(0), i.operand(0)->shape().ByteSize(), Bytes(0)};
}
Result Recv(const Instruction& i, const CalleeCosts&) {
  return Cost{Flops(0), Flops(0), Bytes(0), InFlight(i.shape())};
}
Result Infeed(const Instruction& i, const CalleeCosts&) {
  return Cost{Flops(0), Flops(0), Bytes(0), InFlight(i.shape())};
}
Result Outfeed(const Instruction& i, const CalleeCosts&) {
  return Cost{Flops(0), Flops(0), i.operand(0)->shape().ByteSize(), Bytes(0)};
}

}  // namespace tpusim::hlo::cost_rules
