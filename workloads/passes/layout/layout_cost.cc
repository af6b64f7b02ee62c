#include "workloads/passes/layout/layout_cost.h"

#include <algorithm>
#include <limits>

#include "models/timing/kernel_timing.h"
#include "workloads/kernels/kernel_view.h"
#include "workloads/kernels/vector_cost.h"
#include "workloads/passes/layout/same_bytes.h"

namespace tpusim::passes {
namespace {

bool Holds(const Dims& dims, int64_t d) {
  return std::find(dims.begin(), dims.end(), d) != dims.end();
}

}  // namespace

LayoutCost::LayoutCost(const target::Target& target)
    : target_(target),
      bytes_per_cycle_(timing::HbmRate(target.chip()).value() / target.chip().clock.value()) {
  const configs::VpuParams& vpu = target.chip().vpu;
  const auto cores = static_cast<double>(target.chip().CoresPerDevice());
  register_cycles_ = 1 / (static_cast<double>(std::max<int64_t>(1, vpu.alus_per_lane)) * cores);
  const Picoseconds kernel =
      target.chip().tensor_core.kernel_launch + target.chip().dma.start_latency;
  kernel_cycles_ = ToSeconds(kernel) * target.chip().clock.value();
  cross_lane_cycles_ =
      vpu.xlu_cycles_per_vreg / (static_cast<double>(std::max<int64_t>(1, vpu.xlu_count)) * cores);
}

double LayoutCost::Memory(const hlo::Shape& shape) const {
  return static_cast<double>(target_.PaddedSize(shape).value()) / bytes_per_cycle_;
}

double LayoutCost::Registers(const hlo::Shape& shape) const {
  return static_cast<double>(kernels::VectorRegisters(target_, shape)) * register_cycles_;
}

double LayoutCost::CrossLanes(const hlo::Shape& shape) const {
  return static_cast<double>(kernels::VectorRegisters(target_, shape)) * cross_lane_cycles_;
}

const hlo::Shape& LayoutCost::InOrder(const hlo::Shape& shape, const Dims& order, bool second) {
  // Assigned to the same memory again and again.
  hlo::Shape& scratch = second ? second_ : first_;
  scratch.element_type = shape.element_type;
  scratch.dims.assign(shape.dims.begin(), shape.dims.end());
  scratch.layout.minor_to_major.assign(order.begin(), order.end());
  return scratch;
}

double LayoutCost::Of(const Term& term, const Dims& order) {
  const hlo::Shape& shape = InOrder(*term.shape, order, false);
  switch (term.kind) {
    case Term::Kind::kMemory:
      return term.count * 2 * Memory(shape);
    case Term::Kind::kRegisters:
      return term.count * Registers(shape);
    case Term::Kind::kCrossLanes:
      return Holds(term.dims, order[0]) ? term.count * CrossLanes(shape) : 0;
    case Term::Kind::kReduce: {
      const kernels::Crossing crossing = kernels::CrossingOfReduction(shape, term.dims, target_);
      return term.count * crossing.registers * cross_lane_cycles_;
    }
    case Term::Kind::kIndexed: {
      // Rows of a piece, each in whole granules.
      double rows = 1;
      for (size_t place = 1; place < order.size(); ++place) {
        rows *= static_cast<double>(term.dims[static_cast<size_t>(order[place])]);
      }
      const int64_t row =
          CeilDiv(term.dims[static_cast<size_t>(order[0])] * hlo::BitWidth(shape.element_type), 8);
      const auto granules = static_cast<double>(RoundUp(row, target_.chip().dma.granule.value()));
      return term.count * rows * granules / bytes_per_cycle_;
    }
    case Term::Kind::kBatch:
      return Holds(term.dims, order[0]) || Holds(term.dims, order[1])
                 ? std::numeric_limits<double>::infinity()
                 : 0;
  }
  return 0;
}

double LayoutCost::OfCopy(const hlo::Shape& array, const Dims& from, const Dims& to, bool alone) {
  if (from == to) return 0;
  const hlo::Shape& source = InOrder(array, from, false);
  const hlo::Shape& result = InOrder(array, to, true);
  // Rows that only go elsewhere do so on their way in or out of some kernel.
  const bool rows = from[0] == to[0];
  if (rows && !alone) return std::max(Registers(source), Registers(result));
  if (rows) return kernel_cycles_ + Memory(source) + Memory(result);
  return (alone ? kernel_cycles_ : 0) + Memory(source) + Memory(result) +
         std::max(CrossLanes(source), CrossLanes(result));
}

double LayoutCost::Of(const Link& link, const Dims& from, const Dims& to) {
  switch (link.kind) {
    case Link::Kind::kCopy:
      return link.count * OfCopy(*link.from_shape, from, to);
    case Link::Kind::kMove:
      return link.count * OfCopy(*link.from_shape, from, to, /*alone=*/true);
    case Link::Kind::kResult:
      if (from == to) return 0;
      return link.count * (OfCopy(*link.from_shape, from, to) + kernel_cycles_);
    case Link::Kind::kLanes: {
      const int64_t lanes = link.map[static_cast<size_t>(from[0])];
      if (lanes == to[0]) return 0;
      // Reduced away, what is left comes out across the lanes as the result wants it.
      if (lanes < 0) return 0;
      const hlo::Shape& a = InOrder(*link.from_shape, from, false);
      const hlo::Shape& b = InOrder(*link.to_shape, to, true);
      const bool from_is_small = a.ElementCount() < b.ElementCount();
      return link.count * (CrossLanes(from_is_small ? a : b) + Registers(b));
    }
    case Link::Kind::kReshape: {
      const hlo::Shape& a = InOrder(*link.from_shape, from, false);
      const hlo::Shape& b = InOrder(*link.to_shape, to, true);
      if (OrderThroughReshape(a.dims, b.dims, from) == to && SameTiling(a, b, target_)) return 0;
      const double turned =
          a.dims[static_cast<size_t>(from[0])] == b.dims[static_cast<size_t>(to[0])]
              ? 0
              : std::max(CrossLanes(a), CrossLanes(b));
      return link.count * (Memory(a) + Memory(b) + turned);
    }
  }
  return 0;
}

Dims OrderThrough(const Link& link, const Dims& order, bool backward) {
  if (OfOneArray(link)) return order;
  const hlo::Shape& goal = backward ? *link.from_shape : *link.to_shape;
  if (link.kind == Link::Kind::kReshape) {
    return OrderThroughReshape((backward ? link.to_shape : link.from_shape)->dims, goal.dims,
                               order);
  }
  Dims image(static_cast<size_t>((backward ? link.to_shape : link.from_shape)->rank()), -1);
  for (size_t d = 0; d < link.map.size(); ++d) {
    if (link.map[d] < 0) continue;
    if (backward) {
      image[static_cast<size_t>(link.map[d])] = static_cast<int64_t>(d);
    } else {
      image[d] = link.map[d];
    }
  }
  Dims result;
  for (int64_t d : order) {
    if (image[static_cast<size_t>(d)] >= 0) result.push_back(image[static_cast<size_t>(d)]);
  }
  for (int64_t d = goal.rank() - 1; d >= 0; --d) {
    if (!Holds(result, d)) result.push_back(d);
  }
  return result;
}

}  // namespace tpusim::passes
