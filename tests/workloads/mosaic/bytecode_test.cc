#include "workloads/mosaic/bytecode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "configs/status_macros.h"
#include "mosaic_test_util.h"

namespace tpusim::mosaic {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Bytecode, FunctionsAttributesAndTypes) {
  const auto module = ReadBytecode(BodyBytes("matmul")).value();
  const Operation* main = module->Main();
  ASSERT_NE(main, nullptr);
  EXPECT_EQ(main->Find("sym_name")->text, "matmul");
  EXPECT_THAT(main->Find("iteration_bounds")->integers, ElementsAre(4, 2, 8));
  EXPECT_EQ(main->Find("scratch_operands")->integer, 1);
  const Attribute* windows = main->Find("window_params");
  ASSERT_EQ(windows->elements.size(), 3);
  EXPECT_THAT(windows->elements[1]->Find("window_bounds")->integers, ElementsAre(128, 256));
  const std::string& transform = windows->elements[1]->Find("transform_indices")->text;
  const Operation* function = module->Function(transform);
  ASSERT_NE(function, nullptr);
  // (i, j, k) -> (k, j)
  const Block& block = function->regions[0].blocks[0];
  EXPECT_THAT(block.operations.back()->operands,
              ElementsAre(block.arguments[2], block.arguments[1]));
  // Three places in the grid, two operands, the result, the sum.
  const std::vector<const Value*>& arguments = main->regions[0].blocks[0].arguments;
  ASSERT_EQ(arguments.size(), 7);
  const Type& sum = *arguments[6]->type;
  EXPECT_EQ(sum.kind, Type::Kind::kMemRef);
  EXPECT_THAT(sum.shape, ElementsAre(128, 256));
  EXPECT_EQ(sum.element->name, "f32");
  EXPECT_EQ(sum.memory_space, "vmem");
}

TEST(Bytecode, OperationsAndPlaces) {
  const auto module = ReadBytecode(BodyBytes("copies")).value();
  const Operation* loop = nullptr;
  for (const Operation& operation : module->operations) {
    if (operation.name == "scf.for" && loop == nullptr) loop = &operation;
    if (operation.name == "tpu.enqueue_dma") {
      EXPECT_THAT(operation.Segments(), ElementsAre(1, 0, 1, 1, 0, 0));
      EXPECT_THAT(operation.operands[0]->type->shape, ElementsAre(kDynamic, 128));
    }
  }
  ASSERT_NE(loop, nullptr);
  EXPECT_THAT(PlaceOf(loop->location), HasSubstr("make_seeds.py:"));
}

TEST(Bytecode, DamagedBytesAreOneError) {
  const std::string bytes = BodyBytes("matmul");
  for (size_t size = 0; size < bytes.size(); ++size) {
    const auto module = ReadBytecode(std::string_view(bytes).substr(0, size));
    ASSERT_FALSE(module.ok()) << size;
    ASSERT_THAT(Message(module.status()), HasSubstr("the body of the kernel cannot be read: "));
  }
  EXPECT_THAT(Message(ReadBytecode("a kernel").status()), HasSubstr("no MLIR bytecode"));
  std::string newer = bytes;
  newer[4] = 2 * 50 + 1;  // a varint of one byte
  EXPECT_THAT(Message(ReadBytecode(newer).status()), HasSubstr("version 50"));
}

}  // namespace
}  // namespace tpusim::mosaic
