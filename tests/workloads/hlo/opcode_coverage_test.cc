// One instance of every opcode: it verifies, prints, survives the way to a file
// and back, and has a cost. What has no rule yet is listed by name.
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "hlo_test_util.h"
#include "opcode_samples.h"
#include "workloads/hlo/rules/cost.h"
#include "workloads/hlo/rules/shape_inference.h"

namespace tpusim::hlo {
namespace {

using ::testing::HasSubstr;

// Not emitted by JAX, and without a cost: an error names them when they come.
const std::set<Opcode>& WithoutCost() {
  static const auto* opcodes =
      new std::set<Opcode>{Opcode::kBatchNormGrad, Opcode::kBatchNormInference,
                           Opcode::kBatchNormTraining, Opcode::kDynamicReshape, Opcode::kScan};
  return *opcodes;
}

// A start has something that waits for it.
void AddDone(TestModule& module) {
  Instruction* start = module.entry()->root();
  const std::string_view name = OpcodeName(start->opcode());
  if (!IsAsyncStart(start->opcode()) && start->opcode() != Opcode::kAsyncUpdate) return;
  const std::string of_done = std::string(name.substr(0, name.rfind('-'))) + "-done";
  Instruction* done = module.Add(*OpcodeFromName(of_done), F32({}), {start});
  done->set_shape(InferShape(*done).value());
}

class OpcodeCoverageTest : public ::testing::TestWithParam<int> {};

TEST_P(OpcodeCoverageTest, VerifiesPrintsRoundTripsAndCosts) {
  const Opcode opcode = static_cast<Opcode>(GetParam());
  const SampleBuilder build = BuilderOf(opcode);
  if (WithoutCost().contains(opcode)) {
    EXPECT_EQ(build, nullptr) << "has a rule: take it off the list";
    return;
  }
  ASSERT_NE(build, nullptr) << "no example of " << OpcodeName(opcode);
  Sample sample;
  const Example expected = build(sample);
  const Module& module = sample.module().module();
  const Instruction* root = sample.module().entry()->root();
  ASSERT_EQ(root->opcode(), opcode);
  AddDone(sample.module());
  ASSERT_EQ(Message(Verify(module)), "");
  EXPECT_THAT(ToString(module), HasSubstr(expected.prints));

  const pb::HloModuleProto written = ToProto(module);
  const auto again = FromProto(written);
  ASSERT_TRUE(again.ok()) << Message(again.status());
  EXPECT_EQ(ToString(**again), ToString(module));
  EXPECT_EQ(SerializeDeterministic(ToProto(**again)), SerializeDeterministic(written));

  const auto cost = CostOf(*root);
  ASSERT_TRUE(cost.ok()) << Message(cost.status());
  EXPECT_EQ(cost->flops.value(), expected.flops);
  EXPECT_EQ(cost->transcendentals.value(), expected.transcendentals);
  EXPECT_EQ(cost->bytes_read.value(), expected.read);
  EXPECT_EQ(cost->bytes_written.value(), expected.written);
}

// A wrong number of operands, and a wrong result, are errors for every opcode
// that has one.
TEST_P(OpcodeCoverageTest, WrongShapesAreErrors) {
  const Opcode opcode = static_cast<Opcode>(GetParam());
  const SampleBuilder build = BuilderOf(opcode);
  if (build == nullptr) return;
  {
    Sample sample;
    build(sample);
    sample.module().entry()->root()->set_shape(MakeShape(PrimitiveType::kF8E5M2, {3, 5, 7}));
    // These are what they say they are.
    const std::set<Opcode> any = {Opcode::kParameter, Opcode::kCustomCall, Opcode::kIota,
                                  Opcode::kRng, Opcode::kRngGetAndUpdateState};
    EXPECT_EQ(Verify(sample.module().module()).ok(), any.contains(opcode));
  }
  if (OpcodeArity(opcode) < 0) return;
  Sample sample;
  build(sample);
  pb::HloModuleProto proto = ToProto(sample.module().module());
  auto* instructions = proto.mutable_computations()->rbegin()->mutable_instructions();
  pb::HloInstructionProto& root = *instructions->rbegin();
  if (instructions->size() == 1) return;  // nothing to add as an operand
  root.add_operand_ids(instructions->Get(0).id());
  EXPECT_THAT(Message(FromProto(proto).status()), HasSubstr("operands, not"));
}

INSTANTIATE_TEST_SUITE_P(All, OpcodeCoverageTest, ::testing::Range(0, kNumOpcodes),
                         [](const auto& param) {
                           std::string name(OpcodeName(static_cast<Opcode>(param.param)));
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace tpusim::hlo
