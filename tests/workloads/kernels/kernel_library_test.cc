#include "workloads/kernels/tiling/kernel_library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "configs/config.h"
#include "configs/memory.h"
#include "models/isa/program.h"
#include "models/timing/kernel_time.h"
#include "tests/workloads/hlo/hlo_test_util.h"
#include "tests/workloads/kernels/fused_product.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/kernels/tiling/kernels.h"

namespace tpusim::kernels {
namespace {

using hlo::Computation;
using hlo::F32;
using hlo::Instruction;
using hlo::Opcode;
using hlo::PrimitiveType;
using hlo::Shape;
using hlo::TestModule;

// tanh(a b) + c, fused; what `change` does to it before it is fused is what tells two of
// them apart.
struct Layer {
  Shape lhs = F32({256, 512}), rhs = F32({512, 128}), bias = F32({256, 128});
  Opcode activation = Opcode::kTanh;
  bool bias_twice = false;  // tanh(a b + c) + c
  bool turned = false;      // the sum's operands
  std::string scope;
};

Instruction* MakeLayer(TestModule& m, Instruction* lhs, Instruction* rhs, Instruction* bias,
                       const Layer& layer) {
  Computation* f = m.module().AddComputation("fused");
  Instruction* a = TestModule::Param(f, lhs->shape());
  Instruction* b = TestModule::Param(f, rhs->shape());
  Instruction* c = TestModule::Param(f, bias->shape());
  Instruction* dot = AddProduct(f, layer.bias, a, b);
  Instruction* inside =
      layer.bias_twice ? TestModule::Add(f, Opcode::kAdd, layer.bias, {dot, c}) : dot;
  Instruction* y = TestModule::Add(f, layer.activation, layer.bias, {inside});
  std::vector<Instruction*> sum = {y, c};
  if (layer.turned) std::swap(sum[0], sum[1]);
  TestModule::Add(f, Opcode::kAdd, layer.bias, sum);
  Instruction* fusion = m.Add(Opcode::kFusion, layer.bias, {lhs, rhs, bias});
  fusion->set_called({f});
  fusion->mutable_attrs().mutable_metadata()->set_op_name(layer.scope);
  dot->mutable_attrs().mutable_metadata()->set_op_name(layer.scope);
  return fusion;
}

Instruction* MakeLayer(TestModule& m, const Layer& layer) {
  Instruction* lhs = m.Param(layer.lhs);
  Instruction* rhs = m.Param(layer.rhs);
  return MakeLayer(m, lhs, rhs, m.Param(layer.bias), layer);
}

// Returns the whole kernel as text, names included.
std::string TextOf(const isa::Kernel& kernel) {
  isa::PodProgram program;
  const isa::Body body = {isa::Instruction{kernel}};
  program.programs.push_back(std::make_shared<const isa::Body>(body));
  program.program_of_device = {0};
  return isa::Disassemble(program);
}

class KernelLibraryTest : public ::testing::Test {
 protected:
  KernelLibraryTest() : config_(configs::LoadConfig("v5e-1x1", {}).value()), target_(config_) {}
  TestModule m_;
  configs::Config config_;
  target::Target target_;
};

TEST_F(KernelLibraryTest, EqualLayersAreSearchedOnce) {
  KernelLibrary library(target_);
  for (int n = 0; n < 100; ++n) {
    Layer layer;
    layer.scope = "layer" + std::to_string(n);
    const Instruction* fusion = MakeLayer(m_, layer);
    ASSERT_TRUE(library.CostOf(*fusion).ok());
    const auto remembered = library.Build(*fusion);
    ASSERT_TRUE(remembered.ok()) << Message(remembered.status());
    // Exactly what a search finds, with the names of this layer.
    const isa::Kernel searched = BuildKernel(*fusion, target_).value();
    EXPECT_EQ(TextOf(remembered->kernel), TextOf(searched));
    EXPECT_EQ(remembered->time, timing::KernelTime(config_.chip, searched));
    EXPECT_EQ(library.CostOf(*fusion)->time, remembered->time);
  }
  EXPECT_EQ(library.searches(), 1);
  EXPECT_EQ(library.requests(), 300);
}

// The library builds a kernel again only after a change of something that it depends on.
TEST_F(KernelLibraryTest, SeesEveryChange) {
  KernelLibrary library(target_);
  Instruction* fusion = MakeLayer(m_, Layer());
  const auto matches = [&] {
    const absl::StatusOr<KernelCost> cost = library.CostOf(*fusion);
    return cost.ok() && cost->time == timing::KernelTime(
                                          config_.chip, BuildKernel(*fusion, target_).value());
  };
  const auto to_vmem = [](Instruction* i) {
    Shape shape = i->shape();
    shape.layout.memory_space = hlo::kVmemSpace;
    i->set_shape(std::move(shape));
  };
  const std::vector<std::function<void()>> changes = {
      [] {},
      [&] { to_vmem(fusion->operand(0)); },
      [&] { to_vmem(fusion); },
      [&] { fusion->ReplaceOperand(2, m_.Param(F32({256, 128}))), to_vmem(fusion->operand(2)); },
      [&] {
        Computation* f = fusion->called()[0];
        Instruction* tanh = f->root()->operand(0);
        tanh->ReplaceAllUsesWith(f->Add(Opcode::kExponential, tanh->shape(), tanh->operands()));
      },
      [&] {
        Layer other;
        other.turned = true;
        fusion->set_called(MakeLayer(m_, other)->called());
      },
  };
  for (size_t n = 0; n < changes.size(); ++n) {
    changes[n]();
    EXPECT_TRUE(matches()) << n;
    EXPECT_TRUE(matches()) << n;
    EXPECT_EQ(library.searches(), static_cast<int64_t>(n) + 1) << n;
  }
}

TEST_F(KernelLibraryTest, WindowsHaveTheNamesOfTheOperandsThatTheyHold) {
  KernelLibrary library(target_);
  for (int n = 0; n < 2; ++n) {
    const Instruction* fusion = MakeLayer(m_, Layer());
    std::set<std::string> names;
    const auto built = library.Build(*fusion);
    for (const isa::Window& w : built->kernel.windows) names.insert(w.operand);
    EXPECT_EQ(names, (std::set<std::string>{fusion->operand(0)->name(), fusion->operand(1)->name(),
                                            fusion->operand(2)->name(), fusion->name()}));
  }
  EXPECT_EQ(library.searches(), 1);
}

TEST_F(KernelLibraryTest, WhateverAKernelFollowsFromTellsThemApart) {
  std::set<std::string> forms;
  int made = 0;
  const auto expect_new = [&](const Instruction* i) {
    ++made;
    EXPECT_TRUE(forms.insert(CanonicalForm(*i)).second) << "form " << made << " is not new";
  };
  expect_new(MakeLayer(m_, Layer()));
  Layer layer;
  layer.activation = Opcode::kExponential;
  expect_new(MakeLayer(m_, layer));
  layer = {};
  layer.bias_twice = true;
  expect_new(MakeLayer(m_, layer));
  layer.turned = true;  // the same instructions and shapes, another data flow
  expect_new(MakeLayer(m_, layer));
  layer = {};
  layer.lhs = F32({256, 1024});
  layer.rhs = F32({1024, 128});
  expect_new(MakeLayer(m_, layer));
  for (const int64_t space :
       {hlo::kVmemSpace, configs::MemoryOf(configs::MemorySpace::kCmem).number}) {
    layer = {};
    layer.lhs.layout.memory_space = space;
    expect_new(MakeLayer(m_, layer));
  }
  layer = {};
  layer.rhs.element_type = PrimitiveType::kBf16;
  expect_new(MakeLayer(m_, layer));
  // Another fusion kind is an attribute.
  Instruction* fusion = MakeLayer(m_, Layer());
  fusion->mutable_attrs().set_fusion_kind("kOutput");
  expect_new(fusion);

  // One value twice is read once; and a lone instruction is no fusion.
  Instruction* x = m_.Param(F32({256, 128}));
  Instruction* y = m_.Param(F32({256, 128}));
  expect_new(m_.Add(Opcode::kAdd, x->shape(), {x, y}));
  expect_new(m_.Add(Opcode::kAdd, x->shape(), {x, x}));
  expect_new(m_.Add(Opcode::kMultiply, x->shape(), {x, x}));
}

TEST_F(KernelLibraryTest, CalledComputationsCount) {
  Instruction* x = m_.Param(F32({256, 128}));
  Instruction* zero = hlo::AddConstant(m_.entry(), PrimitiveType::kF32, 0);
  const auto reduce = [&](Opcode op) {
    Instruction* i = m_.Add(Opcode::kReduce, F32({256}), {x, zero});
    hlo::SetDimensions(i, {1});
    i->set_called({m_.Reducer(op)});
    return CanonicalForm(*i);
  };
  EXPECT_EQ(reduce(Opcode::kAdd), reduce(Opcode::kAdd));
  EXPECT_NE(reduce(Opcode::kAdd), reduce(Opcode::kMaximum));
}

TEST_F(KernelLibraryTest, NamesAndPlacesInTheSourceDoNotCount) {
  Layer layer;
  const std::string form = CanonicalForm(*MakeLayer(m_, layer));
  layer.scope = "jit(step)/layer1/dot_general";
  EXPECT_EQ(CanonicalForm(*MakeLayer(m_, layer)), form);
  // Nor does who reads an operand besides.
  Instruction* fusion = MakeLayer(m_, layer);
  m_.Add(Opcode::kNegate, layer.lhs, {fusion->operands()[0]});
  EXPECT_EQ(CanonicalForm(*fusion), form);
}

TEST_F(KernelLibraryTest, ErrorsNameTheInstructionThatAskedForAKernel) {
  KernelLibrary library(target_);
  for (int n = 0; n < 2; ++n) {
    Instruction* x = m_.Param(F32({8}));
    Instruction* call = m_.Add(Opcode::kCustomCall, F32({8}), {x});
    call->mutable_attrs().set_custom_call_target("unknown");
    const auto kernel = library.Build(*call);
    ASSERT_FALSE(kernel.ok());
    EXPECT_THAT(Message(kernel.status()), ::testing::HasSubstr(call->name()));
  }
  EXPECT_EQ(library.searches(), 0);
}

}  // namespace
}  // namespace tpusim::kernels
