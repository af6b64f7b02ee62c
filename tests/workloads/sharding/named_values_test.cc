#include "workloads/sharding/normalised/named_values.h"

#include "sharding_testing.h"
#include "workloads/sharding/normalised/normalise.h"

namespace tpusim::sharding {
namespace {

using hlo::F32;
using hlo::Instruction;
using hlo::Opcode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// out = constraint(name(p q)), with "hidden" for the name, "layer" for the scope.
struct Named {
  Named() {
    ShardedTestModule m;
    Instruction* p = m.Argument(F32({8, 16}), "");
    Instruction* q = m.Argument(F32({16, 8}), "");
    Instruction* dot = m.Dot(p, q, {8, 8});
    dot->mutable_attrs().mutable_metadata()->set_op_name("jit(f)/decoder/layer/dot_general");
    Instruction* name = m.Add(Opcode::kReducePrecision, F32({8, 8}), {dot});
    SetAttribute(name, "tpusim.checkpoint_name", "hidden");
    name->mutable_attrs().set_exponent_bits(8);
    name->mutable_attrs().set_mantissa_bits(23);
    Instruction* constraint = m.Constrain(name, "[{\"x\"}, {}]");
    constraint->mutable_attrs().mutable_metadata()->set_source_file("models/decoder.py");
    constraint->mutable_attrs().mutable_metadata()->set_source_line(42);
    m.Add(Opcode::kNegate, F32({8, 8}), {constraint});
    module = Normalise(m.module().Clone(), 8).value();
  }
  std::vector<std::string> Find(const std::string& pattern) const {
    std::vector<std::string> names;
    for (const Instruction* value : NamedValues(module).Find(pattern)) {
      names.push_back(value->name());
    }
    return names;
  }
  NormalisedModule module;
};

TEST(NamedValues, AreFoundByWhatTheyAreCalled) {
  const Named named;
  const std::string constraint = named.module.module->entry()->root()->operand(0)->name();
  EXPECT_THAT(named.Find("dot"), ElementsAre("dot"));
  EXPECT_THAT(named.Find("d*t"), ElementsAre("dot"));
  EXPECT_THAT(named.Find("hidden"), ElementsAre("dot"));
  EXPECT_THAT(named.Find("hid*"), ElementsAre("dot"));
  EXPECT_THAT(named.Find("layer/dot_general"), ElementsAre("dot"));
  EXPECT_THAT(named.Find("decoder/*/dot_*"), ElementsAre("dot"));
  EXPECT_THAT(named.Find("decoder.py:42"), ElementsAre(constraint));
  EXPECT_THAT(named.Find("models/decoder.py:42"), ElementsAre(constraint));
  for (const char* other :
       {"hiddem", "ayer/dot_general", "oder.py:42", "decoder.py:4", "decoder"}) {
    EXPECT_THAT(named.Find(other), ElementsAre()) << other;
  }
}

TEST(NamedValues, TheNearestNameIsSaid) {
  const Named named;
  EXPECT_THAT(Message(NamedValues(named.module).Missing("--constrain hiddem=P()", "hiddem")),
              HasSubstr("--constrain hiddem=P(): no array of the program has the name 'hiddem', "
                        "the nearest is 'hidden'"));
}

// The program with names is the program without.
TEST(NamedValues, LeaveNothingInTheModule) {
  const Named named;
  for (const Instruction* i : named.module.module->entry()->instructions()) {
    EXPECT_FALSE(i->attrs().has_frontend_attributes()) << i->Describe();
    EXPECT_NE(i->opcode(), Opcode::kReducePrecision);
  }
  ASSERT_EQ(named.module.names.size(), 1u);
  EXPECT_EQ(named.module.names[0].second, "hidden");
  // A copy has names of its own instructions.
  const NormalisedModule copy = CopyOf(named.module);
  EXPECT_EQ(copy.names[0].first->name(), "dot");
  EXPECT_NE(copy.names[0].first, named.module.names[0].first);
}

}  // namespace
}  // namespace tpusim::sharding
