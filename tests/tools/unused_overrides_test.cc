#include "tools/tpusim/pipeline/unused_overrides.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "configs/config.h"
#include "configs/status_macros.h"

namespace tpusim::tools {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A device that runs this body, in a loop so that the walk has to descend.
isa::PodProgram Program(isa::Body body) {
  isa::PodProgram program;
  program.routes = {{"to device 1", {{1, {}}}}};  // on its chip
  isa::Loop loop{2, std::make_shared<const isa::Body>(std::move(body))};
  program.programs = {std::make_shared<const isa::Body>(isa::Body{{loop}})};
  program.program_of_device = {0};
  return program;
}

isa::Instruction Product(isa::NumberFormat format) {
  isa::Kernel kernel;
  kernel.block.mxu = {8, 128, 128, format, 1};
  return {kernel};
}

std::vector<std::string> Unused(const std::string& slice, const std::vector<std::string>& set,
                                const isa::PodProgram& program,
                                const hlo::Module& module = hlo::Module("empty")) {
  const auto config = configs::LoadConfig(slice, set);
  EXPECT_TRUE(config.ok()) << config.status();
  return UnusedOverrides(*config, program, module);
}

TEST(UnusedOverridesTest, FormatsThatTheProgramHasNot) {
  const isa::PodProgram program = Program({Product(isa::NumberFormat::kBf16)});
  EXPECT_THAT(Unused("v5e-4x2", {"chip.mxu.passes_bf16=2"}, program), IsEmpty());
  EXPECT_THAT(Unused("v5e-4x2", {"chip.mxu.passes_int32=9"}, program),
              ElementsAre("--set chip.mxu.passes_int32 has no effect: the program has no matrix "
                          "product of that format"));
}

TEST(UnusedOverridesTest, ParametersThatNothingReadsAreNoneAnyMore) {
  for (const std::string gone : {"ici.links", "chip.sparse_core.tile_bytes"}) {
    EXPECT_EQ(Message(configs::LoadConfig("v5e-4x2", {gone + "=6"}).status()),
              "--set: " + gone + " has no effect and is gone: no part of the model depends on it");
  }
}

TEST(UnusedOverridesTest, VmemWithoutArraysInIt) {
  EXPECT_THAT(Unused("v5e-4x2", {"chip.vmem.bytes=67108864"}, Program({{isa::Rdma{}}})),
              ElementsAre("--set chip.vmem.bytes has no effect: no array would live in VMEM"));
}

TEST(UnusedOverridesTest, TransfersOfSlices) {
  const isa::PodProgram program = Program({{isa::Rdma{}}});
  const std::vector<std::string> set = {"chip.dma.granule_bytes=64", "chip.dma.issue_cycles=3"};
  EXPECT_THAT(Unused("v5e-4x2", set, program),
              ElementsAre("--set chip.dma.granule_bytes has no effect: the program has no gather "
                          "or scatter",
                          "--set chip.dma.issue_cycles has no effect: the program has no gather "
                          "or scatter"));
  hlo::Module module("gathers");
  hlo::Computation* entry = module.AddComputation("main");
  const hlo::Shape shape = hlo::MakeShape(hlo::PrimitiveType::kF32, {8});
  hlo::Instruction* p = entry->AddParameter(0, shape, "p");
  entry->Add(hlo::Opcode::kGather, shape, {p, p});
  EXPECT_THAT(Unused("v5e-4x2", set, program, module), IsEmpty());
}

TEST(UnusedOverridesTest, CmemWithoutArraysInIt) {
  const std::vector<std::string> set = {"chip.cmem.bytes=1e8", "chip.cmem.bytes_per_second=1e12"};
  EXPECT_THAT(Unused("v4-2x2x1", set, Program({Product(isa::NumberFormat::kBf16)})),
              ElementsAre("--set chip.cmem.bytes has no effect: no array would live in CMEM",
                          "--set chip.cmem.bytes_per_second has no effect: nothing is in CMEM"));
  // tanh is made and used up: with another capacity it might be elsewhere.
  hlo::Module module("chain");
  hlo::Computation* entry = module.AddComputation("main");
  module.set_entry(entry);
  const hlo::Shape shape = hlo::MakeShape(hlo::PrimitiveType::kF32, {8});
  hlo::Instruction* p = entry->AddParameter(0, shape, "p");
  hlo::Instruction* t = entry->Add(hlo::Opcode::kTanh, shape, {p});
  entry->set_root(entry->Add(hlo::Opcode::kNegate, shape, {t}));
  isa::Kernel kernel;
  kernel.windows.resize(1);
  kernel.windows[0].space = isa::MemorySpace::kCmem;
  EXPECT_THAT(Unused("v4-2x2x1", set, Program({{kernel}}), module), IsEmpty());
  EXPECT_THAT(
      Unused("v4-2x2x1", {set[1]},
             Program({{isa::Dma{isa::MemorySpace::kHbm, isa::MemorySpace::kCmem, Bytes(1)}}})),
      IsEmpty());
}

TEST(UnusedOverridesTest, LinksWithoutTransfers) {
  const isa::PodProgram quiet = Program({Product(isa::NumberFormat::kBf16)});
  EXPECT_THAT(Unused("v5e-4x2", {"ici.hop_latency_ns=500"}, quiet),
              ElementsAre("--set ici.hop_latency_ns has no effect: the program sends nothing to "
                          "another device"));
  const isa::PodProgram sends = Program({{isa::Rdma{}}});
  EXPECT_THAT(Unused("v5e-4x2", {"ici.hop_latency_ns=500"}, sends), IsEmpty());
  EXPECT_THAT(Unused("v5e-4x2", {"chip.mxu.rows=256"}, sends),
              ElementsAre("--set chip.mxu.rows has no effect: the program has no matrix product"));
}

TEST(UnusedOverridesTest, TheWayBetweenDevicesOfAChip) {
  const std::vector<std::string> set = {"ici.die_to_die_bytes_per_second=1e11"};
  isa::PodProgram sends = Program({{isa::Rdma{}}});
  EXPECT_THAT(Unused("v7x-2x2x1", set, sends), IsEmpty());
  sends.routes[0].from = {{2, {{0, configs::Direction::kXPlus}}}};
  EXPECT_THAT(Unused("v7x-2x2x1", set, sends),
              ElementsAre("--set ici.die_to_die_bytes_per_second has no effect: no device sends "
                          "anything to another of its chip"));
}

TEST(UnusedOverridesTest, EfficiencyOfAxesThatTheSliceHasNot) {
  const isa::PodProgram sends = Program({{isa::Rdma{}}});
  const std::vector<std::string> set = {"ici.wrapped_efficiency=0.5",
                                        "ici.unwrapped_efficiency=0.5"};
  EXPECT_THAT(Unused("v5e-4x2", set, sends),
              ElementsAre("--set ici.wrapped_efficiency has no effect: no axis of v5e-4x2 wraps "
                          "around"));
  EXPECT_THAT(Unused("v5e-16x16", set, sends),
              ElementsAre("--set ici.unwrapped_efficiency has no effect: no axis of v5e-16x16 is "
                          "a line of three chips or more"));
  EXPECT_THAT(Unused("v5e-16x16", {"ici.pair_efficiency=0.5"}, sends),
              ElementsAre("--set ici.pair_efficiency has no effect: no axis of v5e-16x16 has two "
                          "chips"));
  // 8 is a line, 16 a ring.
  EXPECT_THAT(Unused("v5e-8x16", set, sends), IsEmpty());
}

TEST(UnusedOverridesTest, HostWithoutTransfers) {
  const isa::PodProgram program = Program({Product(isa::NumberFormat::kBf16)});
  EXPECT_THAT(Unused("v5e-4x2", {"host.pcie_bytes_per_second=3e10"}, program),
              ElementsAre("--set host.pcie_bytes_per_second has no effect: the program moves "
                          "nothing to or from the host or another slice"));
  EXPECT_THAT(Unused("v5e-4x2", {"host.dcn_latency_ns=5"}, program),
              ElementsAre("--set host.dcn_latency_ns has no effect: there is only one slice"));
  EXPECT_THAT(Unused("2x(v5e-4x2)", {"host.dcn_latency_ns=5"}, program),
              ElementsAre("--set host.dcn_latency_ns has no effect: the program sends nothing from "
                          "slice to slice"));
  EXPECT_THAT(Unused("v5e-4x2", {"host.pcie_bytes_per_second=3e10"}, Program({{isa::HostDma{}}})),
              IsEmpty());
}

}  // namespace
}  // namespace tpusim::tools
