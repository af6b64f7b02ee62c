// Sorting networks.
//
// A bitonic network over n = 2^s keys has s (s + 1) / 2 rounds; in each, every
// key meets one partner, the comparator runs once per pair, and both take the
// smaller or larger. Partners in another register cost a load; partners in
// another lane or sublane of the same register come through the cross-lane unit
// (one rotation each way and a select).

#include <algorithm>

#include "configs/status_macros.h"
#include "configs/units.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/kernels/vector_work/vector_cost.h"
#include "workloads/kernels/view/kernel_view.h"

namespace tpusim::kernels {
namespace {

// One round over `registers` registers of each of `arrays` arrays.
VectorWork Round(double registers, double arrays, const VectorWork& comparator, bool crosses) {
  // In place, a pair is compared once; across lanes every lane compares itself.
  VectorWork work = comparator * (crosses ? registers : registers / 2);
  work.valu += arrays * registers;  // take one of the two
  if (crosses) {
    work.xlu += 2 * arrays * registers;
    work.valu += arrays * registers;  // choose the rotation that brings the partner
  }
  work.load += arrays * registers;
  work.store += arrays * registers;
  return work;
}

// Rounds with strides 2^0 .. 2^(s-1) in merges of growing length: stride 2^j
// comes once in each of the merges j .. s-1. Strides below the register's own
// extent along the sorted dimension cross.
VectorWork Network(int64_t s, int64_t crossing_bits, double registers, double arrays,
                   const VectorWork& comparator) {
  VectorWork work;
  for (int64_t j = 0; j < s; ++j) {
    work += Round(registers, arrays, comparator, j < crossing_bits) * static_cast<double>(s - j);
  }
  return work;
}

// log2 of the elements of one register along dimension `d`.
int64_t CrossingBits(const hlo::Shape& shape, int64_t d, const target::Target& target) {
  const configs::VpuParams& vpu = target.chip().vpu;
  const int64_t place = hlo::PlaceFromMinor(shape, d);
  if (place == 0) return CeilLog2(vpu.lanes);
  return place == 1 ? CeilLog2(vpu.sublanes) : 0;
}

}  // namespace

int64_t SortRounds(int64_t n) {
  const int64_t s = CeilLog2(n);
  return s * (s + 1) / 2;
}

int64_t StreamedPasses(int64_t n, int64_t in_vmem) {
  const int64_t outer = CeilLog2(CeilDiv(n, std::max<int64_t>(in_vmem, 1)));
  // Merge number m beyond VMEM has m rounds that span it, each a pass of its own,
  // and the rest of the merge in one more; the sort of the parts is the first.
  return 1 + outer * (outer + 1) / 2 + outer;
}

absl::StatusOr<VectorWork> SortWork(const hlo::Instruction& sort, const target::Target& target) {
  ASSIGN_OR_RETURN(const VectorWork comparator, CallCost(*sort.called()[0], target));
  const hlo::Shape& keys = sort.operand(0)->shape();
  const int64_t d = hlo::OnlyDimension(sort);
  hlo::Shape padded = keys;
  const int64_t s = CeilLog2(keys.dims[d]);
  padded.dims[d] = int64_t{1} << s;
  return Network(s, CrossingBits(keys, d, target),
                 static_cast<double>(VectorRegisters(target, padded)),
                 static_cast<double>(sort.operands().size()), comparator);
}

// The k largest: groups of 2^t >= k are sorted, then pairs of groups give the
// better half of both (one round) and sort it again (t rounds), which halves the
// data each time. Values travel with their indices.
VectorWork TopKWork(const hlo::Instruction& top_k, int64_t k, const target::Target& target) {
  const hlo::Shape& input = top_k.operand(0)->shape();
  const int64_t d = input.rank() - 1;
  const int64_t t = CeilLog2(k);
  const int64_t levels = std::max<int64_t>(0, CeilLog2(input.dims[d]) - t);
  const double registers = static_cast<double>(VectorRegisters(target, input));
  VectorWork comparator;
  comparator.valu = 1;
  const int64_t crossing = CrossingBits(input, d, target);
  VectorWork work = Network(t, crossing, registers, 2, comparator);
  for (int64_t level = 1; level <= levels; ++level) {
    const double left = registers / static_cast<double>(int64_t{1} << level);
    work += Round(left, 2, comparator, t < crossing);
    for (int64_t j = 0; j < t; ++j) work += Round(left, 2, comparator, j < crossing);
  }
  work.valu += registers;  // the indices
  return work;
}

}  // namespace tpusim::kernels
