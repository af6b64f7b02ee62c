// Every opcode once (data/opcodes.hlo): it verifies, prints, survives the way to a file and back,
// and has a cost. Opcodes without a rule are listed by name.
#include <map>
#include <set>
#include <string>

#include "tests/workloads/hlo/cost_text.h"
#include "tests/workloads/hlo/text_cases.h"

namespace tpusim::hlo {
namespace {

using ::testing::HasSubstr;

// Not emitted by JAX, and without a cost: an error names them when they come.
constexpr Opcode kWithoutCost[] = {Opcode::kBatchNormGrad, Opcode::kBatchNormInference,
                                   Opcode::kBatchNormTraining, Opcode::kDynamicReshape,
                                   Opcode::kScan};
// Any declared shape is right for them.
constexpr Opcode kOfAnyShape[] = {Opcode::kParameter, Opcode::kCustomCall, Opcode::kIota,
                                  Opcode::kRng, Opcode::kRngGetAndUpdateState};

struct Sample {
  TextCase text;
  std::unique_ptr<Module> module;
  Instruction* instruction = nullptr;
};

// Finds the instruction of a case: its root, or the start that its root waits for.
Instruction* AskedOf(const Module& module) {
  Instruction* root = module.entry()->root();
  return root->name() == "done" ? root->operand(0) : root;
}

std::map<Opcode, Sample> Samples() {
  std::map<Opcode, Sample> samples;
  for (const TextCase& one : TextCases("hlo/data/opcodes.hlo")) {
    std::unique_ptr<Module> module = ParsedCase(one);
    if (module == nullptr) continue;
    Instruction* instruction = AskedOf(*module);
    const Opcode opcode = instruction->opcode();
    EXPECT_FALSE(samples.contains(opcode)) << one.at;
    samples[opcode] = {one, std::move(module), instruction};
  }
  return samples;
}

TEST(OpcodeCoverage, EveryOpcodeHasASample) {
  const std::map<Opcode, Sample> samples = Samples();
  for (int n = 0; n < kNumOpcodes; ++n) {
    const Opcode opcode = static_cast<Opcode>(n);
    const bool without = std::ranges::count(kWithoutCost, opcode) > 0;
    EXPECT_NE(samples.contains(opcode), without) << OpcodeName(opcode);
  }
}

TEST(OpcodeCoverage, PrintsRoundTripsAndCosts) {
  for (const auto& [opcode, sample] : Samples()) {
    SCOPED_TRACE(sample.text.at);
    const size_t semicolon = sample.text.expected.find("; ");
    ASSERT_NE(semicolon, std::string::npos);
    EXPECT_EQ(CostText(*sample.instruction), sample.text.expected.substr(0, semicolon));
    EXPECT_THAT(ToString(*sample.module), HasSubstr(sample.text.expected.substr(semicolon + 2)));

    const pb::HloModuleProto written = ToProto(*sample.module);
    const auto again = FromProto(written);
    ASSERT_TRUE(again.ok()) << Message(again.status());
    EXPECT_EQ(ToString(**again), ToString(*sample.module));
    EXPECT_EQ(SerializeDeterministic(ToProto(**again)), SerializeDeterministic(written));
  }
}

TEST(OpcodeCoverage, WrongShapesAreErrors) {
  for (const auto& [opcode, sample] : Samples()) {
    sample.instruction->set_shape(MakeShape(PrimitiveType::kF8E5M2, {3, 5, 7}));
    const bool any = std::ranges::count(kOfAnyShape, opcode) > 0;
    EXPECT_EQ(Verify(*sample.module).ok(), any) << sample.text.at;
  }
}

// Variadic opcodes are left out.
TEST(OpcodeCoverage, WrongNumbersOfOperandsAreErrors) {
  for (const auto& [opcode, sample] : Samples()) {
    if (OpcodeArity(opcode) < 0) continue;
    pb::HloModuleProto proto = ToProto(*sample.module);
    auto* instructions = proto.mutable_computations()->rbegin()->mutable_instructions();
    if (instructions->size() == 1) continue;  // nothing to add as an operand
    for (pb::HloInstructionProto& each : *instructions) {
      if (each.name() == sample.instruction->name()) each.add_operand_ids(instructions->at(0).id());
    }
    EXPECT_THAT(Message(FromProto(proto).status()), HasSubstr("operands, not")) << sample.text.at;
  }
}

}  // namespace
}  // namespace tpusim::hlo
