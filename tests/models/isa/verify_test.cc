// Programs that the machine must refuse, one rule each.
#include "models/isa/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs/status_macros.h"
#include "tests/models/isa/small_programs.h"

namespace tpusim::isa {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Both devices run `body`; route 0 leads from 0 to 1 and from nowhere else.
PodProgram ProgramOf(std::vector<Instruction> body) {
  PodProgram program;
  program.programs = {Share(std::move(body))};
  program.program_of_device = {0, 0};
  program.flags = 2;
  program.tokens = 2;
  program.info.ops.resize(1);
  program.info.ops[0].name = "fusion.1";
  program.info.buffers.resize(1);
  Route route;
  route.name = "right";
  route.from.resize(2);
  route.from[0] = {1, {{0, configs::Direction::kXPlus}}};
  program.routes = {route};
  return program;
}

std::string ErrorOf(const PodProgram& program) { return Message(Verify(program, Pair())); }
std::string ErrorOf(std::vector<Instruction> body) { return ErrorOf(ProgramOf(std::move(body))); }

TEST(Verify, AcceptsAProgram) {
  Kernel kernel;
  kernel.grid = {{4, 0.5}};
  kernel.windows.resize(1);
  const SharedBody other = Share({{Wait{1, 1}}});
  const absl::Status status = Verify(ProgramOf({{Label{0, true}},
                                                {kernel},
                                                {Label{0, false}},
                                                {Start{{StreamKind::kCollective, 1}, 0, other}},
                                                {Loop{3, Share({{Block{}}})}},
                                                {Done{0}}}),
                                     Pair());
  EXPECT_TRUE(status.ok()) << Message(status);
}

TEST(Verify, DevicesMustMatchTheSlice) {
  PodProgram program = ProgramOf({});
  program.program_of_device = {0};
  EXPECT_THAT(ErrorOf(program), HasSubstr("it is for 1 devices, the slice has 2"));
}

TEST(Verify, IndicesMustExist) {
  EXPECT_THAT(ErrorOf({{Wait{2, 1}}}), HasSubstr("flag 2 of 2"));
  EXPECT_THAT(ErrorOf({{Done{2}}}), HasSubstr("token 2 of 2"));
  EXPECT_THAT(ErrorOf({{Label{1, true}}}), HasSubstr("a label of op 1, which is unknown"));
  EXPECT_THAT(ErrorOf({{Alloc{MemorySpace::kHbm, 7}}}), HasSubstr("buffer 7, which is unknown"));
  EXPECT_THAT(ErrorOf({{Signal{3, 0}}}), HasSubstr("route 3, which does not exist"));
  EXPECT_THAT(ErrorOf({{Branch{1, {Share({})}}}}), HasSubstr("branch 1 of 1"));
}

TEST(Verify, NamesOfAllIterationsMustExist) {
  const auto loop = [](int64_t count, int64_t named, Body body) {
    const Iterations::Ranges flags{{{}, {}, {{0, 0, 1, 1}}}};
    return Instruction{
        Loop{count, Share(std::move(body)), std::make_shared<const Iterations>(named, flags)}};
  };
  EXPECT_EQ(ErrorOf({loop(2, 2, {{Wait{0, 1}}})}), "");
  EXPECT_THAT(ErrorOf({loop(3, 3, {{Wait{0, 1}}})}), HasSubstr("flag 2 of 2"));
  EXPECT_THAT(ErrorOf({loop(2, 3, {{Wait{0, 1}}})}), HasSubstr("another trip count"));
  EXPECT_THAT(ErrorOf({loop(2, 2, {loop(2, 2, {})})}), HasSubstr("two loops whose iterations"));
}

TEST(Verify, LabelsMustNestWithinABody) {
  EXPECT_THAT(ErrorOf({{Label{0, true}}}), HasSubstr("label 'fusion.1' does not end"));
  EXPECT_THAT(ErrorOf({{Label{0, false}}}), HasSubstr("'fusion.1' ends without having begun"));
}

TEST(Verify, ErrorsNameTheOperation) {
  EXPECT_THAT(ErrorOf({{Label{0, true}}, {Wait{0, 0}}, {Label{0, false}}}),
              HasSubstr("program 0: fusion.1: a wait for nothing"));
}

TEST(Verify, RoutesMustLeadSomewhereFromEveryDeviceThatUsesThem) {
  EXPECT_THAT(ErrorOf({{Signal{0, 0}}}), HasSubstr("route 'right' leads nowhere from device 1"));
}

TEST(Verify, RoutesMustFollowLinks) {
  PodProgram program = ProgramOf({});
  program.routes[0].from[0].links = {{0, configs::Direction::kYPlus}};
  EXPECT_THAT(ErrorOf(program), HasSubstr("route 'right' from device 0 breaks at chip 0"));
  program.routes[0].from[0] = {0, {{0, configs::Direction::kXPlus}}};
  EXPECT_THAT(ErrorOf(program), HasSubstr("ends at chip 1, not at device 0"));
}

TEST(Verify, WhatHasNoRuleIsRefused) {
  Kernel kernel;
  EXPECT_THAT(ErrorOf({{Start{{StreamKind::kCollective, 0}, 0, Share({{kernel}})}}}),
              HasSubstr("a kernel outside of the stream tensor_core[0]"));
  kernel.windows.resize(1);
  kernel.windows[0].space = MemorySpace::kHost;
  EXPECT_THAT(ErrorOf({{kernel}}), HasSubstr("in host memory"));
  EXPECT_THAT(ErrorOf({{Dma{MemorySpace::kHost, MemorySpace::kHbm, Bytes(1)}}}),
              HasSubstr("that is a HostDma"));
  Block block;
  block.valu = 1;
  EXPECT_THAT(ErrorOf({{Start{{StreamKind::kCollective, 0}, 0, Share({{block}})}}}),
              HasSubstr("outside of a TensorCore stream"));
}

TEST(Verify, KernelsMustMakeSense) {
  Kernel kernel;
  kernel.grid = {{0, 1.0}};
  EXPECT_THAT(ErrorOf({{kernel}}), HasSubstr("a grid dimension of 0 blocks"));
  kernel.grid = {{2, 1.5}};
  EXPECT_THAT(ErrorOf({{kernel}}), HasSubstr("the last one 1.5"));
  kernel.grid.clear();
  kernel.windows.resize(1);
  kernel.windows[0].buffers = 0;
  EXPECT_THAT(ErrorOf({{kernel}}), HasSubstr("with 0 buffers"));
}

TEST(Verify, StreamsAreFoundInsideBodies) {
  const SharedBody empty = Share({});
  const SharedBody nested = Share({{Start{{StreamKind::kHost, 0}, 1, empty}}});
  const PodProgram program =
      ProgramOf({{Loop{1, Share({{Start{{StreamKind::kCollective, 1}, 0, nested}}})}},
                 {Branch{1, {Share({{Start{{StreamKind::kCollective, 5}, 0, empty}}}), empty}}}});
  EXPECT_THAT(StreamsOf(program), ElementsAre(StreamId{}, StreamId{StreamKind::kCollective, 1},
                                              StreamId{StreamKind::kHost, 0}));
}

}  // namespace
}  // namespace tpusim::isa
