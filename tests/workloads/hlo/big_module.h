// Generated modules, large or deep, for tests of scale and for the benchmark.
#ifndef TPUSIM_TESTS_WORKLOADS_HLO_BIG_MODULE_H_
#define TPUSIM_TESTS_WORKLOADS_HLO_BIG_MODULE_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>

#include "fmt/format.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/ir.h"

namespace tpusim::hlo {

// p + p + p + ...: as deep as it is long.
inline std::unique_ptr<Module> ChainOfAdds(int64_t length) {
  auto module = std::make_unique<Module>("chain");
  Computation* main = module->AddComputation("main");
  module->set_entry(main);
  const Shape shape = MakeShape(PrimitiveType::kF32, {8});
  Instruction* p = main->AddParameter(0, shape, "p");
  Instruction* value = p;
  for (int64_t n = 0; n < length; ++n) value = main->Add(Opcode::kAdd, shape, {value, p});
  main->set_root(value);
  return module;
}

// main calls f1 calls f2 ...; each adds one negation of its own.
inline std::unique_ptr<Module> NestedCalls(int64_t depth) {
  auto module = std::make_unique<Module>("nested");
  const Shape shape = MakeShape(PrimitiveType::kF32, {8});
  Computation* callee = nullptr;
  for (int64_t n = 0; n <= depth; ++n) {
    Computation* c = module->AddComputation(fmt::format("f{}", depth - n));
    Instruction* p = c->AddParameter(0, shape, "p");
    Instruction* value = c->Add(Opcode::kNegate, shape, {p});
    if (callee != nullptr) {
      value = c->Add(Opcode::kCall, shape, {value});
      value->set_called({callee});
    }
    value->mutable_attrs().mutable_metadata()->set_op_name(fmt::format("f{}", depth - n));
    c->set_root(value);
    callee = c;
  }
  module->set_entry(callee);
  return module;
}

// About `size` instructions as a training step has them: layers of products,
// broadcasts, elementwise operations and reductions, with names, source lines and
// a call of a shared helper; all values stay in use by a tuple at the end.
inline std::unique_ptr<Module> Layers(int64_t size) {
  auto module = std::make_unique<Module>("layers");
  const Shape x_shape = MakeShape(PrimitiveType::kBf16, {64, 128});
  const Shape w_shape = MakeShape(PrimitiveType::kBf16, {128, 128});
  const Shape row = MakeShape(PrimitiveType::kBf16, {64});
  const Shape scalar = MakeScalarShape(PrimitiveType::kBf16);
  Computation* add = module->AddComputation("add");
  Instruction* a = add->AddParameter(0, scalar, "a");
  Instruction* b = add->AddParameter(1, scalar, "b");
  add->set_root(add->Add(Opcode::kAdd, scalar, {a, b}));
  Computation* silu = module->AddComputation("silu");
  Instruction* z = silu->AddParameter(0, x_shape, "z");
  silu->set_root(
      silu->Add(Opcode::kMultiply, x_shape, {z, silu->Add(Opcode::kLogistic, x_shape, {z})}));

  Computation* main = module->AddComputation("main");
  module->set_entry(main);
  Instruction* x = main->AddParameter(0, x_shape, "x");
  Instruction* w = main->AddParameter(1, w_shape, "w");
  Instruction* zero = AddConstant(main, PrimitiveType::kBf16, 0);
  std::vector<Instruction*> sums;
  int64_t layer = 0;
  const auto named = [&](Instruction* i, const char* what) {
    pb::OpMetadata& metadata = *i->mutable_attrs().mutable_metadata();
    metadata.set_op_name(fmt::format("jit(train_step)/jvp(layer_{})/{}", layer, what));
    metadata.set_source_file("model.py");
    metadata.set_source_line(static_cast<int>(layer % 1000));
    return i;
  };
  constexpr int64_t kPerLayer = 6;
  for (; layer < std::max<int64_t>(1, size / kPerLayer); ++layer) {
    Instruction* dot = named(main->Add(Opcode::kDot, x_shape, {x, w}), "dot_general");
    SetDotDims(dot, {{1}, {0}, {}, {}});
    Instruction* activated = named(main->Add(Opcode::kCall, x_shape, {dot}), "silu");
    activated->set_called({silu});
    Instruction* sum = named(main->Add(Opcode::kReduce, row, {activated, zero}), "reduce_sum");
    SetDimensions(sum, {1});
    sum->set_called({add});
    Instruction* scale = named(main->Add(Opcode::kBroadcast, x_shape, {sum}), "broadcast_in_dim");
    SetDimensions(scale, {0});
    Instruction* scaled = named(main->Add(Opcode::kDivide, x_shape, {activated, scale}), "div");
    x = named(main->Add(Opcode::kAdd, x_shape, {x, scaled}), "add");
    if (layer % 64 == 0) sums.push_back(sum);
  }
  sums.push_back(x);
  std::vector<Shape> shapes;
  for (const Instruction* i : sums) shapes.push_back(i->shape());
  main->set_root(main->Add(Opcode::kTuple, MakeTupleShape(std::move(shapes)), sums));
  return module;
}

}  // namespace tpusim::hlo

#endif  // TPUSIM_TESTS_WORKLOADS_HLO_BIG_MODULE_H_
