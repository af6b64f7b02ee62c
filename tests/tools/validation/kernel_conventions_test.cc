// The TPU compiler's estimates for kernels, with the arithmetic by hand.

#include "tools/validation/kernel_conventions.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "configs/config.h"
#include "tests/workloads/hlo/hlo_test_util.h"

namespace tpusim::validation {
namespace {

using hlo::Instruction;
using hlo::Opcode;
using Json = nlohmann::ordered_json;

// 1000 cycles per step, 512 bytes per cycle: a register of 4 KiB takes 8 cycles.
constexpr Conventions kConventions{
    .loop_step_cycles = 1000, .loop_bytes_per_cycle = 512, .vmem_share = 0.5, .cmem_share = 0.25};

Json Side(const std::string& type, std::vector<int64_t> dims, const std::string& memory,
          const std::string& layout = "1,0:T(8,128)") {
  return Json::array({type, std::move(dims), layout, memory});
}

Json Row(const std::string& opcode, Json inputs, Json output, Json ops = Json::object(),
         Json convs = Json::array()) {
  return {{"opcode", opcode},
          {"inputs", std::move(inputs)},
          {"outputs", Json::array({std::move(output)})},
          {"ops", std::move(ops)},
          {"convs", std::move(convs)}};
}

class KernelConventions : public ::testing::Test {
 protected:
  // A kernel of so many steps that reads every input of the row and writes its output,
  // computing for `valu` operations per step on the four VALUs of v5e.
  isa::Kernel KernelOf(const Json& row, int64_t steps, int64_t valu = 0) {
    isa::Kernel kernel;
    kernel.grid = {{steps, 1.0}};
    kernel.block.valu = valu;
    operands_.clear();
    for (const Json& input : row["inputs"]) {
      const Operand operand = ParseOperand(input);
      operands_.push_back(m_.Param(operand.logical));
      kernel.windows.push_back(Window(isa::WindowKind::kInput, operand, steps));
      kernel.windows.back().operand = operands_.back()->name();
      if (Counts(row, operand, kConventions)) {
        kernel.windows.back().space = isa::MemorySpace::kHbm;
      }
    }
    const Operand output = ParseOperand(row["outputs"][0]);
    kernel.windows.push_back(Window(isa::WindowKind::kOutput, output, steps));
    const Instruction* fusion = m_.Add(Opcode::kFusion, output.logical, operands_);
    // Parameters of the row are numbered from zero.
    for (size_t n = 0; n < operands_.size(); ++n) {
      operands_[n]->mutable_attrs().set_parameter_number(static_cast<int64_t>(n));
    }
    ChargeWindows(*fusion, row, kConventions, kernel);
    return kernel;
  }
  double Cycles(const Json& row, int64_t steps, int64_t valu = 0) {
    const isa::Kernel kernel = KernelOf(row, steps, valu);
    return SerialTime(config_.chip, row, kConventions, kernel);
  }

  static isa::Window Window(isa::WindowKind kind, const Operand& operand, int64_t steps) {
    isa::Window w;
    w.kind = kind;
    w.bytes = Bytes(operand.logical.ByteSize().value() / steps);
    w.moves_with = 1;
    w.space = operand.fast ? isa::MemorySpace::kVmem : isa::MemorySpace::kHbm;
    return w;
  }

  hlo::TestModule m_;
  std::vector<Instruction*> operands_;
  // Blocks without the scalar overhead of a step or the latency of a register.
  configs::Config config_ = configs::LoadConfig("v5e-1x1", {"chip.vpu.latency_cycles=1",
                                                            "chip.tensor_core."
                                                            "grid_step_overhead_ns=0"})
                                .value();
};

// [1024,1024]: 1024 registers. Four steps wait 4000 cycles; 4 bytes in and out are 16 cycles
// per register.
TEST_F(KernelConventions, EveryStepWaits) {
  const Json row =
      Row("tanh", {Side("f32", {1024, 1024}, "HBM")}, Side("f32", {1024, 1024}, "HBM"));
  EXPECT_NEAR(Cycles(row, 4), 4000 + 1024 * 16, 1);
  EXPECT_NEAR(Cycles(row, 8), 8000 + 1024 * 16, 1);
}

// 256 registers per step at 16 cycles are 4096; 20000 operations on four VALUs are 5000, which
// rule. One step has nothing to hide its compute behind.
TEST_F(KernelConventions, ComputeHidesBehindOtherSteps) {
  const Json row =
      Row("tanh", {Side("f32", {1024, 1024}, "HBM")}, Side("f32", {1024, 1024}, "HBM"));
  EXPECT_NEAR(Cycles(row, 4, 20000), 4000 + 4 * 5000, 40);
  EXPECT_NEAR(Cycles(row, 1, 20000), 1000 + 1024 * 16 + 5000, 10);
}

// bf16: 2 bytes in (4 cycles per register), 2 out, and 4 for packing. In VMEM the operand costs
// half, the result its packing only.
TEST_F(KernelConventions, NarrowResultsArePacked) {
  const auto row = [](const char* in, const char* out) {
    return Row("tanh", {Side("bf16", {1024, 1024}, in)}, Side("bf16", {1024, 1024}, out));
  };
  EXPECT_NEAR(Cycles(row("HBM", "HBM"), 4), 4000 + 1024 * (4 + 4 + 8), 1);
  EXPECT_NEAR(Cycles(row("HBM", "VMEM"), 4), 4000 + 1024 * (4 + 8), 1);
  EXPECT_NEAR(Cycles(row("VMEM", "VMEM"), 4), 4000 + 1024 * (2 + 8), 1);
  // CMEM is no better than HBM.
  EXPECT_NEAR(Cycles(row("CMEM", "CMEM"), 4), 4000 + 1024 * (4 + 4 + 8), 1);
  // A 32-bit result in VMEM costs nothing.
  const Json wide =
      Row("tanh", {Side("bf16", {1024, 1024}, "HBM")}, Side("f32", {1024, 1024}, "VMEM"));
  EXPECT_NEAR(Cycles(wide, 4), 4000 + 1024 * 4, 1);
}

// The operand of a reduction is written once more, 4 bytes per element: 8 cycles.
TEST_F(KernelConventions, ReductionsUnpackTheirOperand) {
  const Json row = Row("fusion", {Side("bf16", {1024, 1024}, "HBM")},
                       Side("f32", {1024}, "VMEM", "0:T(1024)"), {{"reduce", {1, 1048576}}});
  EXPECT_NEAR(Cycles(row, 4), 4000 + 1024 * (4 + 8), 1);
}

// [1024,1024] padded to [2048,1024]: the operand takes windows of 1.5 times its size.
TEST_F(KernelConventions, PadsReadMoreThanTheyAreGiven) {
  const Json row = Row("fusion", {Side("f32", {1024, 1024}, "HBM")},
                       Side("f32", {2048, 1024}, "HBM"), {{"pad", {1, 2097152}}});
  EXPECT_NEAR(Cycles(row, 4), 4000 + 1024 * 12 + 2048 * 8, 1);
}

// Copies do not pay for VMEM, but they wait. To another layout of the lanes: 4 bytes for every
// element in HBM, a wait for each side there, and 100 cycles a step.
TEST_F(KernelConventions, CopiesAndRelayouts) {
  const auto row = [](const char* in, const char* out, const char* layout, const char* type) {
    return Row("copy", {Side(type, {1024, 1024}, in)}, Side(type, {1024, 1024}, out, layout));
  };
  const char* same = "1,0:T(8,128)";
  const char* turned = "0,1:T(8,128)";
  EXPECT_NEAR(Cycles(row("VMEM", "VMEM", same, "f32"), 4), 4000, 40);
  EXPECT_NEAR(Cycles(row("VMEM", "VMEM", turned, "f32"), 3), 300, 1);
  EXPECT_NEAR(Cycles(row("HBM", "VMEM", turned, "f32"), 4), 4 * 1100 + 1024 * 8, 1);
  EXPECT_NEAR(Cycles(row("HBM", "VMEM", turned, "bf16"), 4), 4 * 1100 + 1024 * 8, 1);
  EXPECT_NEAR(Cycles(row("HBM", "HBM", turned, "bf16"), 4), 4 * 2100 + 1024 * 16, 1);
}

// Made within VMEM: nothing to wait for, unless it is packed.
TEST_F(KernelConventions, WithoutTransfersNothingWaits) {
  const Json wide = Row("iota", Json::array(), Side("s32", {1024, 1024}, "VMEM"));
  EXPECT_NEAR(Cycles(wide, 1, 1024), 256, 5);
  const Json narrow = Row("fusion", Json::array(), Side("pred", {1024, 1024}, "VMEM"));
  EXPECT_NEAR(Cycles(narrow, 1), 1000 + 1024 * 8, 5);
}

// A product keeps its own time, with 6 bytes per narrow result in HBM and 4 in VMEM, and a
// quarter for operands in CMEM. With a row's maximum in its epilogue it overlaps nothing.
TEST_F(KernelConventions, Products) {
  const auto row = [](const char* in, const char* out, Json ops) {
    return Row("fusion", {Side("bf16", {1024, 1024}, in)}, Side("bf16", {1024, 1024}, out),
               std::move(ops), Json::array({Json::object()}));
  };
  const Json plain = Json::object(), softmax = {{"reduce-window", {1, 1048576}}};
  isa::Kernel kernel = KernelOf(row("CMEM", "HBM", plain), 1);
  EXPECT_EQ(kernel.windows[0].bytes, Bytes(512 * 1024));
  EXPECT_EQ(kernel.windows[1].bytes, Bytes(6 * 1024 * 1024));
  kernel = KernelOf(row("HBM", "VMEM", plain), 1);
  EXPECT_EQ(kernel.windows[1].bytes, Bytes(4 * 1024 * 1024));
  EXPECT_EQ(kernel.windows[1].space, isa::MemorySpace::kHbm);
  EXPECT_FALSE(IsSerial(row("HBM", "VMEM", plain), kConventions, kernel));
  EXPECT_FALSE(IsSerial(row("HBM", "VMEM", softmax), kConventions, kernel));
  kernel.block.latency = tpusim::Cycles(5000);
  EXPECT_TRUE(IsSerial(row("HBM", "VMEM", softmax), kConventions, kernel));
  // Waits, 2 + 4 bytes per element, and the work of its VALUs; what waited is not priced.
  kernel.block.valu = 4000;
  EXPECT_NEAR(SerialTime(config_.chip, row("HBM", "VMEM", softmax), kConventions, kernel),
              1000 + 1024 * 12 + 1000, 10);
}

// Every operand is in VMEM: the packed result (8 cycles per register, 2048 per step) leaves and the
// next step waits while one computes. Steps of 4000 cycles hide both, steps of 1000 do not.
TEST_F(KernelConventions, ProductsThatOnlyWrite) {
  const Json row =
      Row("fusion", {Side("bf16", {1024, 1024}, "VMEM")}, Side("bf16", {1024, 1024}, "VMEM"),
          Json::object(), Json::array({Json::object()}));
  EXPECT_TRUE(IsSerial(row, kConventions, KernelOf(row, 4)));
  EXPECT_NEAR(Cycles(row, 4, 16000), 4 * 4000 + 2048, 20);
  EXPECT_NEAR(Cycles(row, 4, 4000), 1000 + 3 * (2048 + 1000) + 2048, 20);
}

}  // namespace
}  // namespace tpusim::validation
