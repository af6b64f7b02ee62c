// Factorisations and Fourier transforms.
#include <gtest/gtest.h>

#include <vector>

#include "models/timing/kernel_time.h"
#include "models/timing/kernel_timing.h"
#include "tests/workloads/kernels/kernel_families.h"

namespace tpusim::kernels {
namespace {

using AlgebraKernels = KernelFamilies;

TEST_F(AlgebraKernels, CholeskyIsAChainOfColumns) {
  Instruction* x = m_.Param(F32({4, 512, 512}));
  Instruction* cholesky = m_.Add(Opcode::kCholesky, F32({4, 512, 512}), {x});
  const isa::Kernel kernel = Build(cholesky);
  // 2048 columns of 4 x 2 + 2 + 2 x 9 cycles.
  EXPECT_EQ(kernel.block.latency.value() * kernel.Steps(), 2048 * 28);
  EXPECT_GT(kernel.block.mxu.m, 0);
}

TEST_F(AlgebraKernels, FourierTransformsAreButterflies) {
  Instruction* x = m_.Param(MakeShape(PrimitiveType::kC64, {128, 4096}));
  Instruction* fft = m_.Add(Opcode::kFft, MakeShape(PrimitiveType::kC64, {128, 4096}), {x});
  fft->mutable_attrs().add_fft_length(4096);
  const isa::Kernel kernel = Build(fft);
  // 2 x 16 x 32 registers of words, 12 rounds of 2.5 operations per word.
  const double steps = kernel.FullSteps();  // the last one has part of a block
  EXPECT_GE(static_cast<double>(kernel.block.valu) * steps, 1024 * 30);
  EXPECT_LT(static_cast<double>(kernel.block.valu) * steps, 1024 * 30 + steps);
}

// Rows of 512 points are 4 KiB in and as much out. A step takes as many as make it fastest, not
// one; twice the butterflies over the same bytes do not cost less.
TEST_F(AlgebraKernels, FourierTransformsTakeManyRowsToAStep) {
  const auto transform = [&](std::vector<int64_t> dims, size_t over) {
    const Shape shape = MakeShape(PrimitiveType::kC64, dims);
    Instruction* fft = m_.Add(Opcode::kFft, shape, {m_.Param(shape)});
    for (size_t d = dims.size() - over; d < dims.size(); ++d) {
      fft->mutable_attrs().add_fft_length(dims[d]);
    }
    return Build(fft);
  };
  const auto time = [&](const isa::Kernel& kernel) {
    return timing::KernelTime(target_.chip(), kernel);
  };
  const isa::Kernel rows = transform({64, 512, 512}, 1);
  EXPECT_LT(rows.Steps(), 512);
  EXPECT_LE(timing::WindowBytes(rows), target_.ScopedVmem());
  ExpectMoved(rows, Bytes(2 * 128 * kMiB));
  EXPECT_LE(time(rows), time(transform({64, 512, 512}, 2)));
  // Full blocks, of whole registers of eight rows.
  EXPECT_EQ(rows.windows[0].bytes.value() % (8 * 4 * kKiB), 0);
  // More rows are never cheaper.
  for (const int64_t points : {100, 512, 1 << 16, 1 << 19}) {
    Picoseconds before(0);
    for (int64_t n = 1; n <= 2100; n += n < 40 ? 1 : n / 16) {
      const isa::Kernel kernel = transform({n, points}, 1);
      const Picoseconds now = time(kernel);
      EXPECT_GE(now, before) << n << " rows of " << points;
      EXPECT_LE(timing::KernelTimeBound(target_.chip(), kernel), now);
      before = now;
    }
  }
}

// Transfers of one matrix go on beside the columns of another, and more are never cheaper.
TEST_F(AlgebraKernels, FactorisationsOfManyMatricesAreAPipeline) {
  const auto time = [&](int64_t n, int64_t rows) {
    Instruction* x = m_.Param(F32({n, rows, rows}));
    const isa::Kernel kernel = Build(m_.Add(Opcode::kCholesky, x->shape(), {x}));
    EXPECT_LE(timing::WindowBytes(kernel), target_.ScopedVmem());
    return timing::KernelTime(target_.chip(), kernel);
  };
  for (const int64_t rows : {64, 256, 1000}) {
    Picoseconds before(0);
    for (int64_t n = 1; n <= 300; n += n < 20 ? 1 : n / 8) {
      const Picoseconds now = time(n, rows);
      EXPECT_GE(now, before) << n << " matrices of " << rows;
      before = now;
    }
  }
}

}  // namespace
}  // namespace tpusim::kernels
