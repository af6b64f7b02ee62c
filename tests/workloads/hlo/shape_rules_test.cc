// Shapes that operators infer and refuse (data/shapes.hlo).
#include "tests/workloads/hlo/text_cases.h"
#include "workloads/hlo/rules/shape_inference.h"

namespace tpusim::hlo {
namespace {

using ::testing::HasSubstr;

TEST(ShapeRules, DeclaredShapesAreInferred) {
  for (const TextCase& one : TextCases("hlo/data/shapes.hlo")) {
    const std::string error = Message(ParseHloText(one.text).status());
    if (one.expected == "ok") {
      EXPECT_EQ(error, "") << one.at;
    } else {
      EXPECT_THAT(error, HasSubstr(one.expected)) << one.at;
    }
  }
}

// No computation can fit both.
TEST(ShapeRules, InitialValuesAreOfTheElementType) {
  TestModule t;
  Instruction* reduce = t.Add(Opcode::kReduce, F32({4}), {t.Param(F32({8, 4})), t.Param(S32({}))});
  SetDimensions(reduce, {0});
  EXPECT_EQ(Message(InferShape(*reduce).status()), "initial value s32[] of f32[8,4]");
}

}  // namespace
}  // namespace tpusim::hlo
