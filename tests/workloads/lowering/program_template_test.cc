#include "workloads/lowering/program_template.h"

#include <gtest/gtest.h>

namespace tpusim::lowering {
namespace {

// The instruction of role r: a wait for r arrivals; role 0 has none.
std::optional<isa::Instruction> WaitOf(int32_t role) {
  if (role == 0) return std::nullopt;
  return isa::Instruction{isa::Wait{0, role}};
}

template <typename Kind>
const Kind* At(const isa::SharedBody& body, size_t index) {
  return std::get_if<Kind>(&(*body)[index].kind);
}

TEST(ProgramTemplate, WithoutVaryingRolesThereIsOneProgram) {
  ProgramTemplate program;
  program.Add(isa::Alloc{});
  program.AddVarying({0, 2}, WaitOf);
  program.AddVarying({1, 0}, WaitOf);
  ProgramTemplate inner;
  inner.Add(isa::Block{});
  program.AddLoop(3, std::move(inner));
  program.Finish();
  const isa::SharedBody body = program.Program({2, 0});
  ASSERT_EQ(body->size(), 3U);
  EXPECT_EQ(At<isa::Wait>(body, 1)->count, 2);
  EXPECT_EQ(At<isa::Loop>(body, 2)->count, 3);
  EXPECT_EQ(program.Program({2, 0}), body);
}

TEST(ProgramTemplate, NoInstructionIsAProgramToo) {
  ProgramTemplate program;
  program.Finish();
  EXPECT_TRUE(program.Program({})->empty());
}

TEST(ProgramTemplate, ProgramsShareWhatDoesNotVary) {
  ProgramTemplate program;
  program.Add(isa::Alloc{});
  program.Add(isa::Label{});
  program.AddVarying({0, std::nullopt}, WaitOf);
  program.Add(isa::Free{});
  program.Finish();
  const isa::SharedBody none = program.Program({0}), one = program.Program({1});
  // A single instruction is not worth a call.
  ASSERT_EQ(none->size(), 2U);
  ASSERT_EQ(one->size(), 3U);
  ASSERT_NE(At<isa::Call>(one, 0), nullptr);
  EXPECT_EQ(At<isa::Call>(one, 0)->body->size(), 2U);
  EXPECT_EQ(At<isa::Call>(one, 0)->body, At<isa::Call>(none, 0)->body);
  EXPECT_EQ(At<isa::Wait>(one, 1)->count, 1);
  EXPECT_NE(At<isa::Free>(none, 1), nullptr);
}

TEST(ProgramTemplate, LoopsAndBranchesVaryWithWhatIsInThem) {
  ProgramTemplate program;
  ProgramTemplate inner;
  inner.AddVarying({1, std::nullopt}, WaitOf);
  program.AddLoop(4, std::move(inner));
  std::vector<ProgramTemplate> branches(2);
  branches[0].Add(isa::Alloc{});
  branches[1].AddVarying({1, std::nullopt}, WaitOf);
  program.AddBranch({0, std::nullopt}, std::move(branches));
  program.Finish();
  const isa::SharedBody body = program.Program({1, 7});
  ASSERT_EQ(body->size(), 2U);
  EXPECT_EQ(At<isa::Wait>(At<isa::Loop>(body, 0)->body, 0)->count, 7);
  const isa::Branch* branch = At<isa::Branch>(body, 1);
  EXPECT_EQ(branch->taken, 1);
  EXPECT_EQ(At<isa::Wait>(branch->bodies[1], 0)->count, 7);
  EXPECT_NE(At<isa::Alloc>(branch->bodies[0], 0), nullptr);
}

}  // namespace
}  // namespace tpusim::lowering
