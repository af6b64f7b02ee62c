// Kernels on v5e: registers of 8 x 128 words, four VALUs, two cross-lane units, four
// arrays of 128 x 128.
#ifndef TPUSIM_TESTS_WORKLOADS_KERNELS_KERNEL_FAMILIES_H_
#define TPUSIM_TESTS_WORKLOADS_KERNELS_KERNEL_FAMILIES_H_

#include <gtest/gtest.h>

#include "configs/config.h"
#include "models/timing/kernel_timing.h"
#include "tests/workloads/hlo/hlo_test_util.h"
#include "workloads/kernels/tiling/kernels.h"
#include "workloads/kernels/vector_work/vector_cost.h"

namespace tpusim::kernels {

using hlo::F32;
using hlo::Instruction;
using hlo::MakeShape;
using hlo::Opcode;
using hlo::PrimitiveType;
using hlo::S32;
using hlo::Shape;

class KernelFamilies : public ::testing::Test {
 protected:
  KernelFamilies() : config_(configs::LoadConfig("v5e-1x1", {}).value()), target_(config_) {}

  VectorWork Work(const Instruction* i) { return VectorWorkOf(*i, target_).value(); }
  isa::Kernel Build(const Instruction* i) { return BuildKernel(*i, target_).value(); }
  static Bytes Moved(const isa::Kernel& kernel) {
    const timing::KernelTraffic t = timing::TrafficOf(kernel);
    return t.read + t.written;
  }
  // Up to a byte per window and step, which are rounded up.
  static void ExpectMoved(const isa::Kernel& kernel, Bytes bytes) {
    EXPECT_GE(Moved(kernel), bytes);
    const auto windows = static_cast<int64_t>(kernel.windows.size());
    EXPECT_LE(Moved(kernel), bytes + Bytes(windows * kernel.Steps()));
  }

  hlo::TestModule m_;
  configs::Config config_;
  target::Target target_;
};

}  // namespace tpusim::kernels

#endif  // TPUSIM_TESTS_WORKLOADS_KERNELS_KERNEL_FAMILIES_H_
