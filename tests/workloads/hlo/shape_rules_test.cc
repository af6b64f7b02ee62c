// Shapes that operators infer and refuse (data/shapes.hlo).
#include "tests/workloads/hlo/text_cases.h"
#include "workloads/hlo/rules/shape_inference.h"

namespace tpusim::hlo {
namespace {

TEST(ShapeRules, DeclaredShapesAreInferred) { ExpectErrors("hlo/data/shapes.hlo"); }

// No computation can fit both.
TEST(ShapeRules, InitialValuesAreOfTheElementType) {
  TestModule t;
  Instruction* reduce = t.Add(Opcode::kReduce, F32({4}), {t.Param(F32({8, 4})), t.Param(S32({}))});
  SetDimensions(reduce, {0});
  EXPECT_EQ(Message(InferShape(*reduce).status()), "initial value s32[] of f32[8,4]");
}

}  // namespace
}  // namespace tpusim::hlo
