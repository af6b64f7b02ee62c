// Matrix products with something behind them, for tests of their kernels.
#ifndef TPUSIM_TESTS_WORKLOADS_KERNELS_FUSED_PRODUCT_H_
#define TPUSIM_TESTS_WORKLOADS_KERNELS_FUSED_PRODUCT_H_

#include <functional>

#include "tests/workloads/hlo/hlo_test_util.h"
#include "workloads/hlo/ir/attributes.h"

namespace tpusim::kernels {

// a [m,k] times b [k,n].
inline hlo::Instruction* AddProduct(hlo::Computation* c, const hlo::Shape& shape,
                                    hlo::Instruction* a, hlo::Instruction* b) {
  hlo::Instruction* dot = hlo::TestModule::Add(c, hlo::Opcode::kDot, shape, {a, b});
  hlo::DotDims dims;
  dims.lhs_contracting = {1};
  dims.rhs_contracting = {0};
  hlo::SetDotDims(dot, dims);
  return dot;
}

// The fusion of an f32 product and what `epilogue` makes of it.
using Epilogue = std::function<hlo::Instruction*(hlo::Instruction* product)>;
inline hlo::Instruction* FusedProduct(hlo::TestModule& m, hlo::Instruction* a, hlo::Instruction* b,
                                      const Epilogue& epilogue) {
  hlo::Computation* f = m.module().AddComputation("fused_product");
  const hlo::Shape out = hlo::F32({a->shape().dims[0], b->shape().dims[1]});
  hlo::Instruction* p = hlo::TestModule::Param(f, a->shape());
  hlo::Instruction* q = hlo::TestModule::Param(f, b->shape());
  f->set_root(epilogue(AddProduct(f, out, p, q)));
  hlo::Instruction* fusion = m.Add(hlo::Opcode::kFusion, out, {a, b});
  fusion->set_called({f});
  return fusion;
}

// Returns the first step of a softmax: less the maximum along `dimension`.
inline Epilogue LessMaximum(hlo::TestModule& m, int64_t dimension) {
  hlo::Computation* maximum = m.Reducer(hlo::Opcode::kMaximum);
  return [maximum, dimension](hlo::Instruction* x) {
    hlo::Computation* f = x->parent();
    const int64_t kept = 1 - dimension;
    hlo::Instruction* least = hlo::AddConstant(f, hlo::PrimitiveType::kF32, 0);
    hlo::Instruction* top = hlo::TestModule::Add(
        f, hlo::Opcode::kReduce, hlo::F32({x->shape().dims[kept]}), {x, least});
    hlo::SetDimensions(top, {dimension});
    top->set_called({maximum});
    hlo::Instruction* spread = hlo::TestModule::Add(f, hlo::Opcode::kBroadcast, x->shape(), {top});
    hlo::SetDimensions(spread, {kept});
    return hlo::TestModule::Add(f, hlo::Opcode::kSubtract, x->shape(), {x, spread});
  };
}

}  // namespace tpusim::kernels

#endif  // TPUSIM_TESTS_WORKLOADS_KERNELS_FUSED_PRODUCT_H_
