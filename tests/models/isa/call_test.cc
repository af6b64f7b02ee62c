// Bodies that programs call: routes, streams, counts and labels inside them are found.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs/status_macros.h"
#include "models/isa/instruction_count.h"
#include "models/isa/used_routes.h"
#include "models/isa/verify.h"
#include "tests/models/isa/small_programs.h"

namespace tpusim::isa {
namespace {

using ::testing::EndsWith;

// The label of op 0 begins in one body and ends in another, around what differs.
PodProgram TwoPrograms() {
  PodProgram program;
  const SharedBody begin = Share({{Block{}}, {Label{0, true}}});
  const SharedBody end = Share({{Label{0, false}}, {Block{}}});
  const SharedBody send = Share({{Rdma{}}});
  for (const int64_t trips : {3, 5}) {
    program.programs.push_back(
        Share({{Call{begin}}, {Loop{trips, Share({{Call{send}}})}}, {Call{end}}}));
  }
  program.program_of_device = {0, 1};
  program.info.ops.resize(1);
  program.info.ops[0].name = "while.1";
  Route route;
  route.name = "to itself";
  route.from.resize(2);
  route.from[0].peer = 0;
  route.from[1].peer = 1;
  program.routes = {route};
  return program;
}

TEST(Call, LabelsMayBeginInOneBodyAndEndInAnother) {
  const absl::Status status = Verify(TwoPrograms(), Pair());
  EXPECT_TRUE(status.ok()) << Message(status);
}

TEST(Call, LabelsOfABodyCountWhereverItIsCalled) {
  PodProgram program = TwoPrograms();
  Body body = *program.programs[1];
  body.pop_back();
  program.programs[1] = Share(body);
  EXPECT_THAT(Message(Verify(program, Pair())), EndsWith("label 'while.1' does not end"));
  body.push_back({Call{Share({{Label{0, false}}, {Label{0, false}}})}});
  program.programs[1] = Share(body);
  EXPECT_THAT(Message(Verify(program, Pair())),
              EndsWith("label 'while.1' ends without having begun"));
}

TEST(Call, BodiesMustBeRight) {
  PodProgram program = TwoPrograms();
  program.programs[1] = Share({{Call{nullptr}}});
  EXPECT_THAT(Message(Verify(program, Pair())), EndsWith("a body is missing"));
  program.programs[1] = Share({{Call{Share({{Wait{7, 1}}})}}});
  EXPECT_THAT(Message(Verify(program, Pair())), EndsWith("flag 7 of 0"));
}

TEST(Call, IsNoInstruction) {
  const InstructionCount count = CountInstructions(TwoPrograms());
  // Four of the bodies, the loop, and five times the transfer.
  EXPECT_EQ(count.instructions, 4 + 1 + 5);
  EXPECT_EQ(count.loop, "while.1");
  EXPECT_EQ(count.passes, 5);
}

TEST(Call, RoutesAreFoundInside) {
  EXPECT_EQ(UsedRoutes(TwoPrograms()), (std::vector<std::vector<int32_t>>{{0}, {0}}));
}

TEST(Call, ReadsAsIfItStoodThere) {
  PodProgram program = TwoPrograms();
  program.programs.pop_back();
  program.program_of_device = {0, 0};
  const std::string called = Disassemble(program);
  program.programs[0] = Share(
      {{Block{}}, {Label{0, true}}, {Loop{3, Share({{Rdma{}}})}}, {Label{0, false}}, {Block{}}});
  EXPECT_EQ(called, Disassemble(program));
}

}  // namespace
}  // namespace tpusim::isa
