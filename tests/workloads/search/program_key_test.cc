#include "workloads/search/program_key.h"

#include <gtest/gtest.h>

#include "tests/workloads/hlo/hlo_test_util.h"

namespace tpusim::search {
namespace {

using hlo::F32;
using hlo::Instruction;
using hlo::Opcode;

// -a, with a name and an attribute of the negation.
std::string KeyOf(const std::string& name, const std::string& attribute, Opcode opcode,
                  const std::vector<int64_t>& devices) {
  hlo::TestModule m;
  Instruction* a = m.Param(F32({8, 16}));
  Instruction* made = a->parent()->Add(opcode, F32({8, 16}), {a}, name);
  a->parent()->set_root(made);
  if (!attribute.empty()) {
    (*made->mutable_attrs().mutable_frontend_attributes()->mutable_map())["tpusim.axes"] =
        attribute;
  }
  return ProgramKey(m.module(), devices);
}

TEST(ProgramKey, IsOfAllButNames) {
  const std::string key = KeyOf("x", "", Opcode::kNegate, {0, 1});
  EXPECT_EQ(KeyOf("another", "", Opcode::kNegate, {0, 1}), key);
  EXPECT_NE(KeyOf("x", "", Opcode::kAbs, {0, 1}), key);
  EXPECT_NE(KeyOf("x", "", Opcode::kNegate, {1, 0}), key);
  // Windowed einsums, for one, depend on what the partitioner notes.
  EXPECT_NE(KeyOf("x", "X", Opcode::kNegate, {0, 1}), key);
  EXPECT_NE(KeyOf("x", "X", Opcode::kNegate, {0, 1}), KeyOf("x", "Y", Opcode::kNegate, {0, 1}));
}

}  // namespace
}  // namespace tpusim::search
