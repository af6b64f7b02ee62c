#include "workloads/mosaic/repeats.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "mosaic_test_util.h"

namespace tpusim::mosaic {
namespace {

// Vectors of 512 x 2048 are 64 rows of 16 registers.
class RepeatsTest : public HandMade {
 protected:
  const Value* Made(const std::string& name, std::vector<const Value*> operands, const Type* type,
                    std::vector<std::pair<std::string, const Attribute*>> attributes = {}) {
    const Operation& operation = Add(name, std::move(operands), type, std::move(attributes));
    repeats_.Add(operation);
    return operation.results[0];
  }
  const Value* Splat(const Type* type) {
    return Made("vector.broadcast", {Argument(Scalar("i32"))}, type);
  }
  const Value* Iota(int64_t dimension) {
    return Made("tpu.iota", {}, type_, {{"dimensions", Integers({dimension})}});
  }
  double Distinct(const Value* value) { return repeats_.DistinctRegisters(*value, V5e().vpu); }

  Repeats repeats_;
  const Type* type_ = Vector({512, 2048}, "i32");
};

TEST_F(RepeatsTest, NothingIsKnownOfData) {
  EXPECT_EQ(Distinct(Argument(type_)), 64 * 16);
  EXPECT_EQ(Distinct(Made("vector.load", {}, type_)), 64 * 16);
  EXPECT_EQ(Distinct(Made("tpu.iota", {}, type_)), 64 * 16);
}

TEST_F(RepeatsTest, ASplatIsOneRegister) {
  EXPECT_EQ(Distinct(Splat(type_)), 1);
  EXPECT_EQ(Distinct(Made("arith.constant", {}, type_, {{"value", Integers({7})}})), 1);
  EXPECT_EQ(Distinct(Made("arith.constant", {}, type_, {{"value", Integers({7, 8})}})), 64 * 16);
}

TEST_F(RepeatsTest, LaneNumbersDifferAlongOneDimension) {
  EXPECT_EQ(Distinct(Iota(0)), 64);
  EXPECT_EQ(Distinct(Iota(1)), 16);
}

// The mask of a causal attention: only where rows meet columns is there work for all registers.
TEST_F(RepeatsTest, ElementwiseWorkDiffersWhereItsOperandsDo) {
  const Value* row = Made("arith.divsi", {Iota(0), Splat(type_)}, type_);
  const Value* column = Made("arith.addi", {Splat(type_), Iota(1)}, type_);
  EXPECT_EQ(Distinct(row), 64);
  EXPECT_EQ(Distinct(column), 16);
  EXPECT_EQ(Distinct(Made("arith.cmpi", {row, column}, Vector({512, 2048}, "i1"))), 64 * 16);
  EXPECT_EQ(Distinct(Made("arith.muli", {row, Argument(type_)}, type_)), 64 * 16);
}

TEST_F(RepeatsTest, ABroadcastIsTheSameAlongWhatItGets) {
  const Type* all = Vector({4, 64, 256});
  EXPECT_EQ(Distinct(Made("vector.broadcast", {Argument(Vector({64, 1}))}, all)), 8);
  EXPECT_EQ(Distinct(Made("vector.broadcast", {Argument(Vector({1, 256}))}, all)), 2);
  EXPECT_EQ(Distinct(Made("vector.broadcast", {Argument(Vector({64, 256}))}, all)), 16);
  EXPECT_EQ(Distinct(Made("vector.broadcast", {Splat(Vector({64, 256}))}, all)), 1);
}

TEST_F(RepeatsTest, AnotherShapeKeepsOnlyWhatIsTheSameEverywhere) {
  const Type* flat = Vector({1024, 1024}, "i32");
  EXPECT_EQ(Distinct(Made("vector.shape_cast", {Splat(type_)}, flat)), 1);
  EXPECT_EQ(Distinct(Made("vector.shape_cast", {Iota(0)}, flat)), 128 * 8);
  EXPECT_EQ(Distinct(Made("vector.shape_cast", {Iota(0)}, type_)), 64);
  EXPECT_EQ(Distinct(Made("tpu.rotate", {Iota(0)}, type_)), 64 * 16);
}

}  // namespace
}  // namespace tpusim::mosaic
