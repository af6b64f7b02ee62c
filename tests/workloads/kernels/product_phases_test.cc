// Parts of a product's block that do not run beside its passes: computed operands, turned weights.
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "configs/config.h"
#include "models/timing/kernel_timing.h"
#include "tests/workloads/hlo/hlo_test_util.h"
#include "tests/workloads/kernels/fused_product.h"
#include "workloads/kernels/tiling/kernels.h"

namespace tpusim::kernels {
namespace {

using hlo::F32;
using hlo::Instruction;
using hlo::Opcode;

hlo::Shape Bf16(std::vector<int64_t> dims) {
  return hlo::MakeShape(hlo::PrimitiveType::kBf16, std::move(dims));
}

class ProductPhases : public ::testing::Test {
 protected:
  // The cube roots of a, times b.
  isa::Kernel OfComputedRows(const hlo::Shape& a, const hlo::Shape& b) {
    hlo::Computation* f = m_.module().AddComputation("fused");
    Instruction* p = hlo::TestModule::Param(f, a);
    Instruction* q = hlo::TestModule::Param(f, b);
    Instruction* rows = hlo::TestModule::Add(f, Opcode::kCbrt, a, {p});
    f->set_root(AddProduct(f, F32({a.dims[0], b.dims[1]}), rows, q));
    Instruction* fusion = m_.Add(Opcode::kFusion, f->root()->shape(), {m_.Param(a), m_.Param(b)});
    fusion->set_called({f});
    return BuildKernel(*fusion, target_).value();
  }
  hlo::TestModule m_;
  configs::Config config_ = configs::LoadConfig("v6e-1x1", {}).value();
  target::Target target_{config_};
};

// One sweep over the rows has 256 columns: with no more there is nothing that waits.
TEST_F(ProductPhases, ComputedRowsAreBesideOneSweep) {
  const isa::Kernel narrow = OfComputedRows(F32({1024, 512}), F32({512, 256}));
  EXPECT_EQ(narrow.block.latency, Cycles(0));
  const isa::Kernel wide = OfComputedRows(F32({1024, 512}), F32({512, 1024}));
  const timing::BlockCycles cycles = timing::TimeBlock(target_.chip(), wide.block);
  // The first of four sweeps is as long as the vector work, unless its product is longer.
  const int64_t first = std::max(cycles.vpu.value(), cycles.mxu.value() / 4);
  const int64_t most = first + cycles.mxu.value() * 3 / 4 + 8;
  EXPECT_GT(wide.block.latency, Cycles(0));
  EXPECT_LE(std::max(cycles.mxu, cycles.vpu) + wide.block.latency, Cycles(most));
}

// Weights are turned if the contraction is along the lanes on both sides. Few rows do not hide
// that: 4096 x 4096 weights take as long again.
TEST_F(ProductPhases, FewRowsWaitForTurnedWeights) {
  const auto of = [&](bool turned) {
    Instruction* a = m_.Param(Bf16({16, 4096}));
    Instruction* b = m_.Param(Bf16({4096, 4096}));
    Instruction* dot = AddProduct(m_.module().entry(), Bf16({16, 4096}), a, b);
    hlo::DotDims dims;
    dims.lhs_contracting = {1};
    dims.rhs_contracting = {turned ? 1 : 0};
    hlo::SetDotDims(dot, dims);
    const isa::Kernel kernel = BuildKernel(*dot, target_).value();
    return static_cast<double>(kernel.block.latency.value()) * kernel.FullSteps();
  };
  EXPECT_EQ(of(false), 0);
  const double load = 4096. * 4096 / 256 / 4 / 2;  // 4 rows of 256 weights, two arrays
  EXPECT_NEAR(of(true), load / target_.chip().mxu.efficiency, load / 20);
}

// Weights of 128 columns fill half of an array's columns and come in half of the time.
TEST_F(ProductPhases, HalfATileIsLoadedInHalfOfTheTime) {
  const auto cycles = [&](int64_t columns) {
    isa::Block block;
    block.mxu = {8, 2048, columns, isa::NumberFormat::kBf16, 16};
    return timing::TimeBlock(target_.chip(), block).mxu.value();
  };
  EXPECT_NEAR(static_cast<double>(cycles(128)), static_cast<double>(cycles(256)) / 2, 1);
}

// Few rows go through two matrices of weights in one kernel: both weights, 65,536,000 bytes each,
// are read once beside the 163,840 of the rows, and have the arrays one after the other.
TEST_F(ProductPhases, TwoProductsReadTheWeightsOfBoth) {
  const auto of = [&](bool twice) {
    hlo::Computation* f = m_.module().AddComputation("fused");
    Instruction* x = hlo::TestModule::Param(f, Bf16({16, 5120}));
    Instruction* up = hlo::TestModule::Param(f, Bf16({5120, 6400}));
    Instruction* last = AddProduct(f, Bf16({16, 6400}), x, up);
    std::vector<Instruction*> operands = {m_.Param(x->shape()), m_.Param(up->shape())};
    if (twice) {
      Instruction* down = hlo::TestModule::Param(f, Bf16({6400, 5120}));
      last = AddProduct(f, Bf16({16, 5120}), last, down);
      operands.push_back(m_.Param(down->shape()));
    }
    f->set_root(last);
    Instruction* fusion = m_.Add(Opcode::kFusion, last->shape(), operands);
    fusion->set_called({f});
    return BuildKernel(*fusion, target_).value();
  };
  const isa::Kernel one = of(false), two = of(true);
  const auto read = static_cast<double>(timing::TrafficOf(two).read.value());
  EXPECT_NEAR(read, 2 * 65'536'000 + 163'840, 0.001 * read);
  const auto arrays = [&](const isa::Kernel& kernel) {
    const Cycles mxu = timing::TimeBlock(target_.chip(), kernel.block).mxu;
    return static_cast<double>((mxu + kernel.block.latency).value()) * kernel.FullSteps();
  };
  EXPECT_NEAR(arrays(two), 2 * arrays(one), 0.2 * arrays(one));
}

}  // namespace
}  // namespace tpusim::kernels
