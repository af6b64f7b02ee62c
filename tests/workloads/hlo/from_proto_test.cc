// From the wire to the IR: ids, payloads, old spellings.
#include "hlo_test_util.h"

namespace tpusim::hlo {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// p0, p1 -> add, with small ids as old writers gave them.
pb::HloModuleProto Minimal() {
  pb::HloModuleProto module;
  module.set_name("m");
  module.set_entry_computation_id(7);
  module.set_entry_computation_name("main");
  pb::HloComputationProto& c = *module.add_computations();
  c.set_name("main");
  c.set_id(7);
  c.set_root_id(3);
  for (int n = 0; n < 3; ++n) {
    pb::HloInstructionProto& i = *c.add_instructions();
    i.set_name("i" + std::to_string(n));
    i.set_id(n + 1);
    i.set_opcode(n == 2 ? "add" : "parameter");
    i.set_parameter_number(n == 2 ? 0 : n);
    i.mutable_shape()->set_element_type(pb::F32);
    i.mutable_shape()->add_dimensions(4);
  }
  c.mutable_instructions(2)->add_operand_ids(1);
  c.mutable_instructions(2)->add_operand_ids(2);
  return module;
}

std::unique_ptr<Module> Build(const pb::HloModuleProto& proto) {
  auto module = FromProto(proto);
  EXPECT_TRUE(module.ok()) << Message(module.status());
  return module.ok() ? std::move(*module) : nullptr;
}

std::string Error(const pb::HloModuleProto& proto) {
  const auto module = FromProto(proto);
  return module.ok() ? "no error" : Message(module.status());
}

pb::HloInstructionProto* Add(pb::HloModuleProto* module) {
  return module->mutable_computations(0)->mutable_instructions(2);
}

TEST(FromProtoTest, SmallIds) {
  const auto module = Build(Minimal());
  const Instruction* root = module->entry()->root();
  EXPECT_EQ(root->name(), "i2");
  EXPECT_EQ(root->operand(0)->name(), "i0");
  EXPECT_EQ(root->operand(1)->name(), "i1");
  // Structural fields are not attributes.
  EXPECT_EQ(root->attrs().ByteSizeLong(), 0u);
}

TEST(FromProtoTest, IdsWithTheComputationInTheHighWord) {
  pb::HloModuleProto proto = Minimal();
  pb::HloComputationProto& c = *proto.mutable_computations(0);
  const auto wide = [&](int64_t id) { return c.id() << 32 | id; };
  for (auto& i : *c.mutable_instructions()) i.set_id(wide(i.id()));
  Add(&proto)->set_operand_ids(0, wide(1));
  Add(&proto)->set_operand_ids(1, wide(2));
  c.set_root_id(wide(3));
  EXPECT_EQ(Build(proto)->entry()->root()->operand(1)->name(), "i1");
  // Local ids in a file whose instruction ids are wide.
  c.set_root_id(3);
  EXPECT_EQ(Build(proto)->entry()->root()->name(), "i2");
}

TEST(FromProtoTest, MissingLayoutsBecomeRowMajor) {
  EXPECT_THAT(Build(Minimal())->entry()->root()->shape().layout.minor_to_major, ElementsAre(0));
}

TEST(FromProtoTest, OldCompare) {
  pb::HloModuleProto proto = Minimal();
  Add(&proto)->set_opcode("less-than");
  Add(&proto)->mutable_shape()->set_element_type(pb::PRED);
  const auto module = Build(proto);
  EXPECT_EQ(module->entry()->root()->opcode(), Opcode::kCompare);
  EXPECT_EQ(module->entry()->root()->attrs().comparison_direction(), "LT");
}

TEST(FromProtoTest, InternedPayloads) {
  pb::HloModuleProto proto = Minimal();
  pb::OpMetadata metadata;
  metadata.set_op_name("jit(f)/add");
  proto.add_payloads("{\"a\":1}");
  proto.add_payloads(metadata.SerializeAsString());
  Add(&proto)->mutable_backend_config_payload()->set_id(0);
  Add(&proto)->mutable_metadata()->mutable_metadata_payload()->set_id(1);
  const auto module = Build(proto);
  EXPECT_EQ(module->entry()->root()->attrs().backend_config(), "{\"a\":1}");
  EXPECT_EQ(module->entry()->root()->op_name(), "jit(f)/add");
  EXPECT_EQ(module->fields().payloads_size(), 0);
  // Text of a library, which is no metadata.
  Add(&proto)->mutable_metadata()->mutable_metadata_payload()->set_value("{\"op\": 1}");
  EXPECT_EQ(Build(proto)->entry()->root()->attrs().metadata().metadata_payload().value(),
            "{\"op\": 1}");
  // In place instead of interned.
  Add(&proto)->mutable_backend_config_payload()->set_value("x");
  EXPECT_EQ(Build(proto)->entry()->root()->attrs().backend_config(), "x");
  Add(&proto)->mutable_backend_config_payload()->set_id(2);
  EXPECT_EQ(Error(proto), "instruction i2 of computation main: payload id 2 of 2");
}

TEST(FromProtoTest, Schedule) {
  pb::HloModuleProto proto = Minimal();
  auto& sequence = (*proto.mutable_schedule()->mutable_sequences())[7];
  for (int64_t id : {2, 1, 3}) sequence.add_instruction_ids(id);
  const auto module = Build(proto);
  std::vector<std::string> names;
  for (const Instruction* i : module->entry()->Order()) names.push_back(i->name());
  EXPECT_THAT(names, ElementsAre("i1", "i0", "i2"));
  const pb::HloModuleProto out = ToProto(*module);
  EXPECT_EQ(out.schedule().sequences().size(), 1u);
  sequence.set_instruction_ids(2, 9);
  EXPECT_EQ(Error(proto), "schedule of main: no instruction has the id 9");
  sequence.mutable_instruction_ids()->Truncate(2);
  EXPECT_EQ(Error(proto), "schedule of main has 2 of 3 instructions");
  sequence.set_instruction_ids(1, 3);
  EXPECT_EQ(Error(proto), "schedule of main: i2 comes before i0, which it needs");
}

TEST(FromProtoTest, UnknownFieldsSurvive) {
  pb::HloModuleProto proto = Minimal();
  const auto add = [](google::protobuf::Message* message) {
    message->GetReflection()->MutableUnknownFields(message)->AddVarint(99999, 5);
  };
  add(&proto);
  add(proto.mutable_computations(0));
  add(Add(&proto));
  const pb::HloModuleProto out = ToProto(*Build(proto));
  const auto count = [](const google::protobuf::Message& message) {
    return message.GetReflection()->GetUnknownFields(message).field_count();
  };
  EXPECT_EQ(count(out), 1);
  EXPECT_EQ(count(out.computations(0)), 1);
  EXPECT_EQ(count(out.computations(0).instructions(2)), 1);
}

TEST(FromProtoTest, DuplicateNamesAreMadeUnique) {
  pb::HloModuleProto proto = Minimal();
  Add(&proto)->set_name("i0");
  EXPECT_EQ(Build(proto)->entry()->root()->name(), "i0.1");
}

TEST(FromProtoTest, Errors) {
  const auto error = [](auto edit) {
    pb::HloModuleProto proto = Minimal();
    edit(&proto);
    return Error(proto);
  };
  EXPECT_EQ(error([](auto* m) { Add(m)->set_operand_ids(1, 77); }),
            "instruction i2 of computation main: operand id 77 is no instruction that comes "
            "before it in its computation");
  EXPECT_THAT(error([](auto* m) { Add(m)->set_operand_ids(1, 3); }),  // itself
              HasSubstr("operand id 3 is no instruction that comes before it"));
  EXPECT_EQ(error([](auto* m) { Add(m)->set_opcode("frobnicate"); }),
            "instruction i2 of computation main: unknown opcode 'frobnicate'");
  EXPECT_EQ(error([](auto* m) { Add(m)->set_id(1); }),
            "instruction i2 of computation main: the id 1 is taken");
  EXPECT_EQ(error([](auto* m) { m->mutable_computations(0)->set_root_id(42); }),
            "computation main: no instruction has the root id 42");
  EXPECT_THAT(error([](auto* m) { m->set_entry_computation_id(8); }),
              HasSubstr("the entry computation main (id 8) is not among the 1 computations"));
  EXPECT_THAT(error([](auto* m) { Add(m)->add_called_computation_ids(7); }),
              HasSubstr("called computation id 7 is no computation that comes before it"));
  EXPECT_THAT(error([](auto* m) { *m->add_computations() = m->computations(0); }),
              HasSubstr("two computations have the id 7"));
  EXPECT_EQ(error([](auto* m) { Add(m)->add_sparsity_config("\x08\x01"); }),
            "instruction i2 of computation main: sparse operands are not supported");
  EXPECT_EQ(error([](auto* m) { Add(m)->add_sparsity_config(""); }), "no error");  // dense
  EXPECT_EQ(error([](auto* m) { Add(m)->mutable_shape()->set_dimensions(0, 5); }),
            "i2, add: its shape is f32[5], but its operands give f32[4]");
}

}  // namespace
}  // namespace tpusim::hlo
