// Long and deep programs from the file to the partitioned module: time in
// proportion to size, no stack per depth.
#include <ctime>
#include <memory>
#include <string>
#include <utility>

#include "configs/status_macros.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/workloads/hlo/big_module.h"
#include "tests/workloads/sharded_program.h"
#include "workloads/hlo/analysis/verify.h"
#include "workloads/hlo/io/import.h"
#include "workloads/hlo/io/printer.h"
#include "workloads/hlo/io/wire.h"
#include "workloads/sharding/propagation/propagate.h"
#include "workloads/spmd/partition.h"

namespace tpusim::spmd {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;
using hlo::Shape;
using ::testing::HasSubstr;
using workloads::ProgramForm;
using workloads::ShardedProgram;

absl::StatusOr<PartitionResult> FrontEnd(const hlo::Module& module) {
  const std::string bytes = ToProto(module).SerializeAsString();
  ASSIGN_OR_RETURN(hlo::ImportedWorkload imported, hlo::Import(bytes, "big.pb"));
  ASSIGN_OR_RETURN(const sharding::ShardedModule sharded,
                   sharding::ShardModule(std::move(imported.module), 8));
  return Partition(sharded, {});
}

// A mesh of 8, and the entry's first parameter split over it.
void Split(hlo::Module* module) {
  (*module->mutable_fields().mutable_frontend_attributes()->mutable_map())["xla.sdy.meshes"] =
      R"({mesh = #sdy.mesh<["x"=8]>})";
  hlo::SetFrontendAttribute(module->entry()->parameters()[0], "xla.sdy.sharding",
                            R"(#sdy.sharding<@mesh, [{"x"}]>)");
}

TEST(FrontEndScaleTest, ChainOf200000) {
  const auto module = hlo::ChainOfAdds(200000);
  Split(module.get());
  const auto result = FrontEnd(*module);
  ASSERT_TRUE(result.ok()) << Message(result.status());
  // The parameter and as many additions, of 8 / 8 elements each.
  EXPECT_EQ(result->module->entry()->size(), 200001u);
  EXPECT_EQ(result->module->entry()->root()->shape().ToString(), "f32[1]");
}

TEST(FrontEndScaleTest, CallsNested10000Deep) {
  const auto module = hlo::NestedCalls(10000);
  Split(module.get());
  const auto result = FrontEnd(*module);
  ASSERT_TRUE(result.ok()) << Message(result.status());
  // The parameter and a negation for each of f0 to f10000.
  EXPECT_EQ(result->module->entry()->size(), 10002u);
  EXPECT_EQ(result->module->entry()->root()->shape().ToString(), "f32[1]");
}

TEST(FrontEndScaleTest, TuplesNested60Deep) {
  auto module = hlo::ChainOfAdds(1);
  Computation* main = module->entry();
  Instruction* value = main->root();
  for (int n = 0; n < 60; ++n) {
    value = main->Add(Opcode::kTuple, hlo::MakeTupleShape({value->shape()}), {value});
  }
  for (int n = 0; n < 60; ++n) {
    value = main->Add(Opcode::kGetTupleElement, Shape(value->shape().tuple[0]), {value});
  }
  main->set_root(main->Add(Opcode::kNegate, value->shape(), {value}));
  Split(module.get());
  const auto result = FrontEnd(*module);
  ASSERT_TRUE(result.ok()) << Message(result.status());
  EXPECT_EQ(result->module->entry()->size(), 3u);  // parameter, add, negate
  EXPECT_EQ(result->module->entry()->root()->shape().ToString(), "f32[1]");
}

// while (false) { while (false) { ... negate } }, `depth` loops.
std::unique_ptr<hlo::Module> NestedLoops(int depth) {
  auto module = std::make_unique<hlo::Module>("loops");
  const Shape shape = hlo::MakeShape(hlo::PrimitiveType::kF32, {8});
  Computation* body = nullptr;
  for (int n = 0; n <= depth; ++n) {
    Computation* outer = module->AddComputation("body");
    Instruction* value = outer->AddParameter(0, shape, "p");
    if (body == nullptr) {
      value = outer->Add(Opcode::kNegate, shape, {value});
    } else {
      Computation* condition = module->AddComputation("condition");
      condition->AddParameter(0, shape, "p");
      condition->set_root(hlo::AddConstant(condition, hlo::PrimitiveType::kPred, 0));
      value = outer->Add(Opcode::kWhile, shape, {value});
      value->set_called({body, condition});
    }
    outer->set_root(value);
    body = outer;
  }
  module->set_entry(body);
  return module;
}

TEST(FrontEndScaleTest, NestingOfLoopsIsLimited) {
  auto module = NestedLoops(256);
  Split(module.get());
  const auto result = FrontEnd(*module);
  ASSERT_TRUE(result.ok()) << Message(result.status());
  EXPECT_EQ(result->module->computations().size(), 2u * 256 + 1);
  EXPECT_EQ(result->module->entry()->root()->shape().ToString(), "f32[1]");

  module = NestedLoops(257);
  Split(module.get());
  EXPECT_THAT(Message(FrontEnd(*module).status()),
              HasSubstr("computations nested more than 256 deep at while"));
  // However deep: an error and no overflow.
  module = NestedLoops(5000);
  Split(module.get());
  EXPECT_THAT(Message(FrontEnd(*module).status()), HasSubstr("nested more than 256 deep"));
}

class FrontEndTimeTest : public ::testing::TestWithParam<ProgramForm> {};

TEST_P(FrontEndTimeTest, GrowsWithSize) {
  const auto seconds = [](int64_t size) {
    const auto module = ShardedProgram::Make(size, GetParam());
    const std::clock_t start = std::clock();
    const auto result = FrontEnd(*module);
    EXPECT_TRUE(result.ok()) << Message(result.status());
    return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  };
  seconds(1000);  // whatever happens once
  const double small = seconds(2000), large = seconds(20000);
  // Ten times as much to do; quadratic would be a hundred times as much.
  EXPECT_LT(large, 30 * small);
}

INSTANTIATE_TEST_SUITE_P(Forms, FrontEndTimeTest,
                         ::testing::Values(ProgramForm::kFlat, ProgramForm::kCalls,
                                           ProgramForm::kReshards));

}  // namespace
}  // namespace tpusim::spmd
