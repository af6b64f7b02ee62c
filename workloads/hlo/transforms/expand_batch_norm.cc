#include "workloads/hlo/transforms/expand_batch_norm.h"

#include <vector>

#include "workloads/hlo/ir/walk.h"
#include "workloads/hlo/transforms/plain_operations.h"

namespace tpusim::hlo {
namespace {

// The parts that the three operations share; vectors have an element per feature.
struct Normalisation {
  explicit Normalisation(Instruction& replaced)
      : operations(replaced),
        x(replaced.operand(0)),
        feature(replaced.attrs().feature_index()),
        epsilon(replaced.attrs().epsilon()) {}

  Instruction* Widened(Instruction* vector) {
    return operations.Broadcast(vector, x->shape().dims, {feature});
  }
  Instruction* FilledVector(double value) {
    return operations.Fill(x->shape().element_type, {x->shape().dims[feature]}, value);
  }
  Instruction* Mean(Instruction* value) {
    const double count = static_cast<double>(x->shape().ElementCount()) /
                         static_cast<double>(x->shape().dims[feature]);
    return operations.Apply(Opcode::kMultiply,
                            {operations.SumExcept(value, feature), FilledVector(1 / count)});
  }
  // 1 / sqrt(variance + epsilon)
  Instruction* InverseDeviation(Instruction* variance) {
    return operations.Apply(
        Opcode::kRsqrt, {operations.Apply(Opcode::kAdd, {variance, FilledVector(epsilon)})});
  }
  Instruction* Centered(Instruction* mean) {
    return operations.Apply(Opcode::kSubtract, {x, Widened(mean)});
  }
  Instruction* Multiply(Instruction* a, Instruction* b) {
    return operations.Apply(Opcode::kMultiply, {a, b});
  }
  // (x - mean) / sqrt(variance + epsilon) * scale + offset
  Instruction* Normalised(Instruction* mean, Instruction* variance, Instruction* scale,
                          Instruction* offset) {
    Instruction* factor = Multiply(InverseDeviation(variance), scale);
    return operations.Apply(Opcode::kAdd,
                            {Multiply(Centered(mean), Widened(factor)), Widened(offset)});
  }

  PlainOperations operations;
  Instruction* x;
  int64_t feature;
  double epsilon;
};

void ExpandTraining(Instruction& i) {
  Normalisation n(i);
  Instruction* mean = n.Mean(n.x);
  Instruction* variance = n.operations.Apply(
      Opcode::kSubtract, {n.Mean(n.Multiply(n.x, n.x)), n.Multiply(mean, mean)});
  n.operations.ReplaceByTuple(
      {n.Normalised(mean, variance, i.operand(1), i.operand(2)), mean, variance});
}

void ExpandInference(Instruction& i) {
  Normalisation n(i);
  n.operations.Replace(n.Normalised(i.operand(3), i.operand(4), i.operand(1), i.operand(2)));
}

// Gradients of x, scale and offset. With g the gradient of the result, c = x - mean and
// r = 1 / sqrt(variance + epsilon): of the offset sum(g), of the scale sum(g * c) * r, of x
// scale * r * (g - mean(g) - c * r * r * mean(g * c)).
void ExpandGrad(Instruction& i) {
  Normalisation n(i);
  Instruction* g = i.operand(4);
  Instruction* centered = n.Centered(i.operand(2));
  Instruction* inverse = n.InverseDeviation(i.operand(3));
  Instruction* weighted = n.Multiply(g, centered);
  Instruction* of_scale = n.Multiply(n.operations.SumExcept(weighted, n.feature), inverse);
  Instruction* of_offset = n.operations.SumExcept(g, n.feature);
  Instruction* slope = n.Multiply(n.Multiply(inverse, inverse), n.Mean(weighted));
  Instruction* inner = n.operations.Apply(
      Opcode::kSubtract,
      {n.operations.Apply(Opcode::kSubtract, {g, n.Widened(n.Mean(g))}),
       n.Multiply(centered, n.Widened(slope))});
  Instruction* of_x = n.Multiply(n.Widened(n.Multiply(i.operand(1), inverse)), inner);
  n.operations.ReplaceByTuple({of_x, of_scale, of_offset});
}

}  // namespace

void ExpandBatchNorm(Module& module) {
  for (Computation* computation : module.computations()) {
    for (Instruction* i : Walk(computation->instructions())) {
      switch (i->opcode()) {
        case Opcode::kBatchNormTraining:
          ExpandTraining(*i);
          break;
        case Opcode::kBatchNormInference:
          ExpandInference(*i);
          break;
        case Opcode::kBatchNormGrad:
          ExpandGrad(*i);
          break;
        default:
          break;
      }
    }
  }
}

}  // namespace tpusim::hlo
