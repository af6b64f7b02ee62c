// Indices of gathers that are positions.
#include "workloads/sharding/propagation/batch_indices.h"

#include "tests/workloads/sharding/rules_test_util.h"

namespace tpusim::sharding {
namespace {

using hlo::F32;
using hlo::Instruction;
using hlo::MakeShape;
using hlo::Opcode;
using hlo::PrimitiveType;
using hlo::S32;
using hlo::TestModule;

const Instruction* no_caller(const hlo::Computation&) { return nullptr; }

class BatchIndicesTest : public testing::Test {
 protected:
  Instruction* Iota(std::vector<int64_t> dims, int64_t dim,
                    PrimitiveType type = PrimitiveType::kS32) {
    Instruction* iota = m_.Add(Opcode::kIota, MakeShape(type, std::move(dims)), {});
    hlo::SetDimensions(iota, {dim});
    return iota;
  }
  Instruction* Number(int64_t value, std::vector<int64_t> dims) {
    Instruction* scalar = hlo::AddConstant(m_.entry(), PrimitiveType::kS32, value);
    Instruction* spread = m_.Add(Opcode::kBroadcast, S32(std::move(dims)), {scalar});
    hlo::SetDimensions(spread, {});
    return spread;
  }
  // f32[8,32] at s32[8,2] index vectors.
  Instruction* Gather(Instruction* rows, Instruction* columns) {
    Instruction* indices = m_.Add(Opcode::kConcatenate, S32({8, 2}), {rows, columns});
    hlo::SetDimensions(indices, {1});
    Instruction* gather = m_.Add(Opcode::kGather, F32({8}), {x_, indices});
    auto* dims = gather->mutable_attrs().mutable_gather_dimension_numbers();
    for (int64_t d : {0, 1}) {
      dims->add_collapsed_slice_dims(d);
      dims->add_start_index_map(d);
      gather->mutable_attrs().add_gather_slice_sizes(1);
    }
    dims->set_index_vector_dim(1);
    return gather;
  }

  TestModule m_;
  Instruction* x_ = m_.Param(F32({8, 32}));
  Instruction* columns_ = m_.Param(S32({8, 1}));
};

TEST_F(BatchIndicesTest, PositionsAsPythonCountsThem) {
  Instruction* iota = Iota({8}, 0);
  EXPECT_EQ(CountedDimension(*iota, no_caller), 0);
  Instruction* column = m_.Add(Opcode::kReshape, S32({8, 1}), {iota});
  Instruction* negative = m_.Add(Opcode::kCompare, MakeShape(PrimitiveType::kPred, {8, 1}),
                                 {column, Number(0, {8, 1})});
  negative->mutable_attrs().set_comparison_direction("LT");
  Instruction* from_end = m_.Add(Opcode::kAdd, S32({8, 1}), {column, Number(8, {8, 1})});
  EXPECT_EQ(CountedDimension(*from_end, no_caller), std::nullopt);  // 8, 9, ...
  Instruction* wrapped = m_.Add(Opcode::kSelect, S32({8, 1}), {negative, from_end, column});
  EXPECT_EQ(CountedDimension(*wrapped, no_caller), 0);
  Instruction* flat = m_.Add(Opcode::kReshape, S32({8}), {wrapped});
  Instruction* table = m_.Add(Opcode::kBroadcast, S32({4, 8, 2}), {flat});
  hlo::SetDimensions(table, {1});
  EXPECT_EQ(CountedDimension(*table, no_caller), 1);
  EXPECT_EQ(CountedDimension(*columns_, no_caller), std::nullopt);
}

TEST_F(BatchIndicesTest, NumbersThatDoNotFitArePositionsNoLonger) {
  // -128 follows 127.
  EXPECT_EQ(CountedDimension(*Iota({128}, 0, PrimitiveType::kS8), no_caller), 0);
  EXPECT_EQ(CountedDimension(*Iota({129}, 0, PrimitiveType::kS8), no_caller), std::nullopt);
}

TEST_F(BatchIndicesTest, APositionIsABatchDimension) {
  Instruction* gather = Gather(Iota({8, 1}, 0), columns_);
  EXPECT_EQ(RuleText(gather), "(c d)(a b)->(a) a=8 b=2w c=8r d=32r");
  FindBatchIndices(m_.entry(), no_caller);
  EXPECT_EQ(gather->operand(1), columns_);
  EXPECT_EQ(RuleText(gather), "(a b)(a .)->(a) a=8 b=32r");
}

TEST_F(BatchIndicesTest, OnlyOnceAndOnlyAlongTheWholeDimension) {
  // The diagonal: one of both is a position, the other is looked up.
  Instruction* iota = Iota({8, 1}, 0);
  Instruction* diagonal = Gather(iota, iota);
  FindBatchIndices(m_.entry(), no_caller);
  const auto& dims = diagonal->attrs().gather_dimension_numbers();
  EXPECT_EQ(dims.operand_batching_dims_size(), 1);
  EXPECT_EQ(dims.start_index_map_size(), 1);
  // Eight of 32 columns.
  Instruction* some = Gather(columns_, iota);
  FindBatchIndices(m_.entry(), no_caller);
  EXPECT_EQ(some->attrs().gather_dimension_numbers().operand_batching_dims_size(), 0);
}

}  // namespace
}  // namespace tpusim::sharding
