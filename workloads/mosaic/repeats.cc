#include "workloads/mosaic/repeats.h"

#include <algorithm>
#include <vector>

#include "workloads/mosaic/operations.h"

namespace tpusim::mosaic {
namespace {

constexpr uint64_t kAll = ~uint64_t{0};
constexpr int64_t kMostDimensions = 64;  // number: bits of a set of dimensions

uint64_t Bit(int64_t dimension) {
  return dimension >= 0 && dimension < kMostDimensions ? uint64_t{1} << dimension : 0;
}

// Returns the dimensions of a broadcast along which what it broadcasts differs.
uint64_t DifferingBroadcast(const Type& from, const Type& to, uint64_t differing) {
  const std::vector<int64_t>&source = from.shape, &result = to.shape;
  const int64_t fresh = std::ssize(result) - std::ssize(source);
  uint64_t dimensions = 0;
  for (int64_t d = std::max<int64_t>(0, fresh); d < std::ssize(result); ++d) {
    const bool spread = source[static_cast<size_t>(d - fresh)] != result[static_cast<size_t>(d)];
    if (!spread && (differing & Bit(d - fresh)) != 0) dimensions |= Bit(d);
  }
  return dimensions;
}

}  // namespace

Repeats::Dimensions Repeats::Differing(const Value& value) const {
  if (value.type->kind != Type::Kind::kVector) return 0;
  const auto known = differing_.find(&value);
  return known == differing_.end() ? kAll : known->second;
}

Repeats::Dimensions Repeats::DifferingResults(const Operation& operation) const {
  const Type& to = *operation.results[0]->type;
  if (std::ssize(to.shape) > kMostDimensions) return kAll;
  if (operation.name == "arith.constant") {
    const Attribute* value = operation.Find("value");
    const bool splat = value != nullptr && value->integers.size() == 1;
    return splat ? 0 : kAll;
  }
  if (operation.name == "tpu.iota") {
    const Attribute* along = operation.Find("dimensions");
    if (along == nullptr || along->integers.empty()) return kAll;
    Dimensions dimensions = 0;
    for (const int64_t d : along->integers) dimensions |= Bit(d);
    return dimensions;
  }
  if (operation.operands.empty()) return kAll;
  const Value& first = *operation.operands[0];
  if (operation.name == "vector.broadcast") {
    return DifferingBroadcast(*first.type, to, Differing(first));
  }
  const Rule rule = RuleOf(operation.name);
  const bool elementwise = rule == Rule::kElementwise || rule == Rule::kTranscendental;
  Dimensions dimensions = 0;
  for (const Value* operand : operation.operands) dimensions |= Differing(*operand);
  // Another shape has other dimensions, but what is the same everywhere stays so.
  if (!elementwise && operation.name != "vector.shape_cast") return kAll;
  return dimensions == 0 || first.type->shape == to.shape || elementwise ? dimensions : kAll;
}

void Repeats::Add(const Operation& operation) {
  if (operation.results.size() != 1) return;
  differing_[operation.results[0]] = DifferingResults(operation);
}

double Repeats::DistinctRegisters(const Value& value, const configs::VpuParams& vpu) const {
  const Dimensions dimensions = Differing(value);
  Type part = *value.type;
  for (int64_t d = 0; d < std::ssize(part.shape); ++d) {
    if ((dimensions & Bit(d)) == 0) part.shape[static_cast<size_t>(d)] = 1;
  }
  return RegistersOf(part, vpu);
}

}  // namespace tpusim::mosaic
