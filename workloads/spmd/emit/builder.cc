#include "workloads/spmd/emit/builder.h"

#include <numeric>

#include "workloads/hlo/ir/annotations.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/transforms/plain_operations.h"

namespace tpusim::spmd {

using hlo::Instruction;
using hlo::Opcode;
using hlo::PrimitiveType;
using hlo::Shape;
using sharding::Axes;
using sharding::AxisRef;

Instruction* Builder::Add(Opcode opcode, Shape shape, std::vector<Instruction*> operands,
                          std::string_view name) {
  Instruction* added = computation_->Add(opcode, std::move(shape), std::move(operands), name);
  if (source_ != nullptr) added->set_metadata(*source_);
  return added;
}

Instruction* Builder::AddLikeSource(Shape shape, std::vector<Instruction*> operands) {
  return computation_->Add(source_->opcode(), std::move(shape), std::move(operands),
                           source_->name(), source_);
}

Instruction* Builder::Constant(PrimitiveType type, double value) {
  Instruction* constant = hlo::AddConstant(computation_, type, value);
  if (source_ != nullptr) constant->set_metadata(*source_);
  return constant;
}

Instruction* Builder::Element(Instruction* tuple, int64_t index) {
  if (tuple->opcode() == Opcode::kTuple) return tuple->operand(index);
  Instruction* element = Add(Opcode::kGetTupleElement, tuple->shape().tuple[index], {tuple});
  element->mutable_attrs().set_tuple_index(index);
  return element;
}

Instruction* Builder::Reshape(Instruction* value, std::vector<int64_t> dims) {
  return Add(Opcode::kReshape, hlo::MakeShape(value->shape().element_type, std::move(dims)),
             {value});
}

Instruction* Builder::Position() {
  if (position_ != nullptr) return position_;
  const Shape scalar = hlo::MakeShape(PrimitiveType::kU32, {});
  position_ = Add(Opcode::kPartitionId, scalar, {});
  if (mesh_.device_ids.empty()) return position_;
  // Partitions are not numbered row by row: look the position up.
  Instruction* table = hlo::AddLiteral(
      computation_,
      hlo::MakeIntVectorLiteral(PrimitiveType::kU32, sharding::PositionOfPartition(mesh_)));
  Instruction* entry =
      Add(Opcode::kDynamicSlice, hlo::MakeShape(PrimitiveType::kU32, {1}), {table, position_});
  hlo::SetDynamicSliceSizes(entry, {1});
  position_ = Reshape(entry, {});
  return position_;
}

Instruction* Builder::Coordinate(const Axes& axes) {
  Instruction*& cached = coordinates_[axes];
  if (cached != nullptr) return cached;
  const Shape scalar = hlo::MakeShape(PrimitiveType::kU32, {});
  // Neighbouring axes that are neighbours in the mesh count as one digit.
  struct Digit {
    int64_t size, stride;
  };
  std::vector<Digit> digits;
  for (const AxisRef& axis : axes) {
    const int64_t stride = Stride(mesh_, axis);
    if (!digits.empty() && digits.back().stride == stride * axis.size) {
      digits.back() = {digits.back().size * axis.size, stride};
    } else {
      digits.push_back({axis.size, stride});
    }
  }
  Instruction* index = nullptr;
  for (const Digit& digit : digits) {
    Instruction* value = Position();
    if (digit.stride != 1) {
      value = Add(Opcode::kDivide, scalar, {value, Constant(PrimitiveType::kU32, digit.stride)});
    }
    if (digit.stride * digit.size != mesh_.size()) {
      value = Add(Opcode::kRemainder, scalar, {value, Constant(PrimitiveType::kU32, digit.size)});
    }
    if (index != nullptr) {
      index = Add(Opcode::kMultiply, scalar, {index, Constant(PrimitiveType::kU32, digit.size)});
      value = Add(Opcode::kAdd, scalar, {index, value});
    }
    index = value;
  }
  if (index == nullptr) {
    cached = Constant(PrimitiveType::kS32, 0);
  } else {
    cached = Add(Opcode::kConvert, hlo::MakeShape(PrimitiveType::kS32, {}), {index});
  }
  return cached;
}

Instruction* Builder::Offset(const Axes& axes, int64_t scale) {
  Instruction*& cached = offsets_[{axes, axes.empty() ? 1 : scale}];
  if (cached != nullptr) return cached;
  Instruction* coordinate = Coordinate(axes);
  cached = axes.empty() || scale == 1 ? coordinate
                                      : Add(Opcode::kMultiply, coordinate->shape(),
                                            {coordinate, Constant(PrimitiveType::kS32, scale)});
  return cached;
}

Instruction* Builder::Collective(Opcode opcode, Shape shape, Instruction* value, const Axes& axes) {
  Instruction* collective = Add(opcode, std::move(shape), {value});
  // Numbered for good when the module is complete.
  collective->mutable_attrs().set_channel_id(1);
  if (opcode != Opcode::kCollectivePermute) {
    if (const auto groups = sharding::IotaReplicaGroups(mesh_, axes)) {
      hlo::SetIotaReplicaGroups(collective, *groups);
    } else {
      hlo::SetReplicaGroups(collective, sharding::ReplicaGroups(mesh_, axes));
    }
  }
  if (!axes.empty()) {
    hlo::annotations::kAxes.Set(collective, ToString(axes, mesh_));
  }
  if (reshard_site_ >= 0) hlo::annotations::kReshardSite.Set(collective, reshard_site_);
  return collective;
}

Instruction* Builder::AllGather(Instruction* value, const Axes& axes, int64_t dim) {
  Shape shape = value->shape();
  shape.dims[dim] *= Product(axes);
  Instruction* gather = Collective(Opcode::kAllGather, shape, value, axes);
  gather->mutable_attrs().set_use_global_device_ids(true);
  hlo::annotations::kReshard.Set(gather);
  hlo::SetDimensions(gather, {dim});
  return gather;
}

Instruction* Builder::AllReduce(Instruction* value, const Axes& axes, hlo::Computation* region) {
  Instruction* reduce = Collective(Opcode::kAllReduce, value->shape(), value, axes);
  reduce->mutable_attrs().set_use_global_device_ids(true);
  reduce->set_called({region});
  return reduce;
}

Instruction* Builder::ReduceScatter(Instruction* value, const Axes& axes, int64_t dim,
                                    hlo::Computation* region) {
  Shape shape = value->shape();
  shape.dims[dim] /= Product(axes);
  Instruction* scatter = Collective(Opcode::kReduceScatter, shape, value, axes);
  scatter->mutable_attrs().set_use_global_device_ids(true);
  hlo::annotations::kReshard.Set(scatter);
  hlo::SetDimensions(scatter, {dim});
  scatter->set_called({region});
  return scatter;
}

Instruction* Builder::AllToAll(Instruction* value, const Axes& axes, int64_t split,
                               int64_t concat) {
  const int64_t n = Product(axes);
  const std::vector<int64_t> dims = value->shape().dims;
  // The group's members become a dimension of their own in front of the split
  // one; after the exchange it numbers the senders, and goes in front of the
  // dimension that it continues.
  std::vector<int64_t> parted = dims;
  parted[split] /= n;
  parted.insert(parted.begin() + split, n);
  Instruction* parts = Reshape(value, parted);
  Instruction* exchanged = Collective(Opcode::kAllToAll, parts->shape(), parts, axes);
  hlo::SetDimensions(exchanged, {split});
  // Dimension `split` of `parted` goes before the one that was `concat`.
  std::vector<int64_t> order;
  for (int64_t d = 0; d < static_cast<int64_t>(dims.size()); ++d) {
    const int64_t at = d < split ? d : d + 1;
    if (d == concat) order.push_back(split);
    order.push_back(at);
  }
  std::vector<int64_t> moved;
  for (int64_t d : order) moved.push_back(parted[d]);
  Instruction* transposed =
      Add(Opcode::kTranspose, hlo::MakeShape(value->shape().element_type, moved), {exchanged});
  hlo::SetDimensions(transposed, order);
  std::vector<int64_t> joined = dims;
  joined[split] /= n;
  joined[concat] *= n;
  return Reshape(transposed, joined);
}

Instruction* Builder::Exchange(Instruction* parts, const Axes& axes) {
  Instruction* exchanged = Collective(Opcode::kAllToAll, parts->shape(), parts, axes);
  hlo::SetDimensions(exchanged, {0});
  return exchanged;
}

Instruction* Builder::CollectivePermute(Instruction* value,
                                        const std::vector<std::pair<int64_t, int64_t>>& pairs,
                                        const Axes& axes) {
  Instruction* permute = Collective(Opcode::kCollectivePermute, value->shape(), value, axes);
  hlo::SetSourceTargetPairs(permute, pairs);
  return permute;
}

hlo::Computation* Builder::BinaryRegion(Opcode opcode, PrimitiveType type) {
  return hlo::AddReducer(*module(), opcode, type, "region_" + std::string(OpcodeName(opcode)));
}

}  // namespace tpusim::spmd
