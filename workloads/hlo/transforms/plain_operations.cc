#include "workloads/hlo/transforms/plain_operations.h"

#include <algorithm>
#include <utility>

#include "workloads/hlo/ir/attributes.h"

namespace tpusim::hlo {

Computation* AddReducer(Module& module, Opcode opcode, PrimitiveType type, std::string_view name) {
  Computation* reducer = module.AddComputation(name);
  const Shape scalar = MakeScalarShape(type);
  Instruction* a = reducer->AddParameter(0, scalar, "a");
  Instruction* b = reducer->AddParameter(1, scalar, "b");
  reducer->set_root(reducer->Add(opcode, scalar, {a, b}));
  return reducer;
}

namespace {

// The sharding of an element of a result, in either of the forms of tuples.
pb::OpSharding ElementSharding(const pb::OpSharding& sharding, int element) {
  pb::OpSharding part = sharding;
  if (element < sharding.tuple_shardings_size()) part = sharding.tuple_shardings(element);
  const pb::NamedShardingProto& named = sharding.named_sharding();
  if (element < named.tuple_shardings_size()) {
    *part.mutable_named_sharding() = named.tuple_shardings(element);
  }
  return part;
}

}  // namespace

Instruction* PlainOperations::Add(Opcode opcode, Shape shape, std::vector<Instruction*> operands) {
  return computation().Add(opcode, std::move(shape), std::move(operands), "", &replaced_);
}

Instruction* PlainOperations::Apply(Opcode opcode, std::vector<Instruction*> operands) {
  const Shape shape = operands[0]->shape();
  return Add(opcode, shape, std::move(operands));
}

Instruction* PlainOperations::Convert(Opcode opcode, Instruction* value, PrimitiveType type) {
  if (value->shape().element_type == type) return value;
  return Add(opcode, MakeShape(type, value->shape().dims), {value});
}

Instruction* PlainOperations::Fill(PrimitiveType type, const std::vector<int64_t>& dims,
                                   double value) {
  return Broadcast(AddConstant(&computation(), type, value), dims, {});
}

Instruction* PlainOperations::Broadcast(Instruction* value, const std::vector<int64_t>& dims,
                                        const std::vector<int64_t>& at) {
  Instruction* broadcast =
      Add(Opcode::kBroadcast, MakeShape(value->shape().element_type, dims), {value});
  SetDimensions(broadcast, at);
  return broadcast;
}

Instruction* PlainOperations::Iota(PrimitiveType type, const std::vector<int64_t>& dims,
                                   int64_t along) {
  Instruction* iota = Add(Opcode::kIota, MakeShape(type, dims), {});
  SetDimensions(iota, {along});
  return iota;
}

Instruction* PlainOperations::Reduce(Opcode opcode, Instruction* value,
                                     const std::vector<int64_t>& dims) {
  const Shape& shape = value->shape();
  std::vector<int64_t> left;
  for (int64_t d = 0; d < shape.rank(); ++d) {
    if (std::ranges::find(dims, d) == dims.end()) left.push_back(shape.dims[d]);
  }
  Instruction* zero = AddConstant(&computation(), shape.element_type, 0);
  Instruction* reduce =
      Add(Opcode::kReduce, MakeShape(shape.element_type, left), {value, zero});
  reduce->set_called({AddReducer(*computation().parent(), opcode, shape.element_type, "sum")});
  SetDimensions(reduce, dims);
  return reduce;
}

Instruction* PlainOperations::SumExcept(Instruction* value, int64_t kept) {
  std::vector<int64_t> dims;
  for (int64_t d = 0; d < value->shape().rank(); ++d) {
    if (d != kept) dims.push_back(d);
  }
  return Reduce(Opcode::kAdd, value, dims);
}

void PlainOperations::Replace(Instruction* value) {
  if (replaced_.attrs().has_sharding() && value->shape().IsArray()) {
    *value->mutable_attrs().mutable_sharding() = replaced_.attrs().sharding();
  }
  if (replaced_.has_control_edges()) replaced_.MoveControlTo(value, value);
  replaced_.ReplaceAllUsesWith(value);
  computation().Remove(&replaced_);
}

void PlainOperations::ReplaceByTuple(const std::vector<Instruction*>& values) {
  std::vector<Shape> shapes;
  for (size_t i = 0; i < values.size(); ++i) {
    shapes.push_back(values[i]->shape());
    if (!replaced_.attrs().has_sharding()) continue;
    *values[i]->mutable_attrs().mutable_sharding() =
        ElementSharding(replaced_.attrs().sharding(), static_cast<int>(i));
  }
  Replace(computation().Add(Opcode::kTuple, MakeTupleShape(std::move(shapes)), values,
                            replaced_.name()));
}

}  // namespace tpusim::hlo
