// FromProto and ToProto lose nothing but the writer's choice of ids.
#include <map>

#include "hlo_test_util.h"

namespace tpusim::hlo {
namespace {

pb::HloModuleProto ReadModule(const std::string& file) {
  const std::string bytes = ReadBytes(file);
  tpusim::Workload workload;
  pb::HloModuleProto module;
  if (workload.ParseFromString(bytes) && workload.format() == "tpusim.workload/1") {
    EXPECT_TRUE(module.ParseFromString(workload.hlo_module()));
  } else {
    EXPECT_TRUE(module.ParseFromString(bytes));
  }
  return module;
}

// Both sides with names instead of ids: instructions by name, sorted, because a
// file may list them in any order that puts operands first.
std::map<std::string, std::string> Normalised(pb::HloModuleProto module) {
  std::map<std::string, std::string> lines;
  std::map<int64_t, std::string> computations;
  for (auto& c : *module.mutable_computations()) {
    computations[c.id()] = c.name();
    std::map<int64_t, std::string> names;
    for (const auto& i : c.instructions()) names[i.id()] = i.name();
    for (auto& i : *c.mutable_instructions()) {
      std::string line;
      for (int64_t id : i.operand_ids()) line += " " + names.at(id);
      for (int64_t id : i.control_predecessor_ids()) line += " after " + names.at(id);
      for (int64_t id : i.called_computation_ids()) line += " calls " + computations.at(id);
      i.clear_id();
      i.clear_operand_ids();
      i.clear_control_predecessor_ids();
      i.clear_called_computation_ids();
      lines[c.name() + "/" + i.name()] = line + SerializeDeterministic(i);
    }
    std::string schedule;
    const auto sequence = module.schedule().sequences().find(c.id());
    if (sequence != module.schedule().sequences().end()) {
      for (int64_t id : sequence->second.instruction_ids()) schedule += " " + names.at(id);
    }
    lines[c.name()] = "root " + names.at(c.root_id()) + schedule +
                      SerializeDeterministic(c.program_shape().result()) + c.execution_thread() +
                      (c.is_fusion_computation() ? " fused" : "");
  }
  lines["entry"] = computations.at(module.entry_computation_id());
  module.clear_computations();
  module.clear_schedule();
  module.clear_entry_computation_id();
  lines["module"] = SerializeDeterministic(module);
  return lines;
}

class RoundTripTest : public ::testing::TestWithParam<std::string> {};

TEST_P(RoundTripTest, NothingIsLost) {
  const pb::HloModuleProto original = ReadModule(GetParam());
  const auto module = FromProto(original);
  ASSERT_TRUE(module.ok()) << Message(module.status());
  const pb::HloModuleProto written = ToProto(**module);
  const auto before = Normalised(original);
  const auto after = Normalised(written);
  EXPECT_EQ(before.size(), after.size());
  for (const auto& [key, value] : before) {
    ASSERT_TRUE(after.contains(key)) << key;
    EXPECT_EQ(after.at(key), value) << key;
  }
}

TEST_P(RoundTripTest, SecondTimeIsByteForByteTheSame) {
  const auto module = FromProto(ReadModule(GetParam()));
  ASSERT_TRUE(module.ok());
  const std::string once = SerializeDeterministic(ToProto(**module));
  const auto again = FromProto(ToProto(**module));
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(SerializeDeterministic(ToProto(**again)), once);
  EXPECT_EQ(SerializeDeterministic(ToProto(*(*module)->Clone())), once);
}

// Checks what XLA's loader insists on.
TEST_P(RoundTripTest, WrittenFormIsWhatXlaLoads) {
  const auto module = FromProto(ReadModule(GetParam()));
  ASSERT_TRUE(module.ok());
  const pb::HloModuleProto written = ToProto(**module);
  EXPECT_TRUE(written.has_host_program_shape());
  std::map<int64_t, int> seen_computations;
  for (const auto& c : written.computations()) {
    EXPECT_TRUE(c.has_program_shape());
    EXPECT_TRUE(c.program_shape().has_result());
    std::map<int64_t, int> seen;
    for (const auto& i : c.instructions()) {
      EXPECT_EQ(i.id() >> 32, c.id());
      for (int64_t id : i.operand_ids()) EXPECT_TRUE(seen.contains(id)) << i.name();
      for (int64_t id : i.called_computation_ids()) {
        EXPECT_TRUE(seen_computations.contains(id)) << i.name();
      }
      if (i.shape().tuple_shapes_size() == 0 && i.shape().element_type() != pb::TUPLE &&
          i.shape().element_type() != pb::TOKEN) {
        EXPECT_TRUE(i.shape().has_layout()) << i.name();
        EXPECT_EQ(i.shape().layout().minor_to_major_size(), i.shape().dimensions_size());
      }
      seen[i.id()] = 1;
    }
    EXPECT_TRUE(seen.contains(c.root_id()));
    seen_computations[c.id()] = 1;
  }
  EXPECT_TRUE(seen_computations.contains(written.entry_computation_id()));
}

INSTANTIATE_TEST_SUITE_P(Exports, RoundTripTest, ::testing::ValuesIn(CommittedExports()),
                         [](const auto& param) {
                           return std::filesystem::path(param.param).stem().string();
                         });

TEST(ToProtoTest, EntryLayoutFollowsTheEntry) {
  const auto module = Load(DataFile("nested_loops.pb"));
  const pb::HloModuleProto same = ToProto(*module);
  EXPECT_EQ(same.host_program_shape().parameters_size(), 1);
  module->entry()->AddParameter(1, F32({9}), "extra");
  const pb::HloModuleProto changed = ToProto(*module);
  ASSERT_EQ(changed.host_program_shape().parameters_size(), 2);
  EXPECT_EQ(changed.host_program_shape().parameters(1).dimensions(0), 9);
  EXPECT_EQ(changed.host_program_shape().parameter_names(1), "extra");
}

}  // namespace
}  // namespace tpusim::hlo
