#include "workloads/hlo/ir/shape.h"

#include "hlo_test_util.h"
#include "workloads/hlo/ir/shape_proto.h"

namespace tpusim::hlo {
namespace {

TEST(ShapeTest, SizesAndText) {
  const Shape shape = MakeShape(PrimitiveType::kBf16, {8, 128});
  EXPECT_EQ(shape.ElementCount(), 1024);
  EXPECT_EQ(shape.ByteSize(), Bytes(2048));
  EXPECT_EQ(shape.ToString(), "bf16[8,128]");
  EXPECT_EQ(shape.ToString(true), "bf16[8,128]{1,0}");
  EXPECT_EQ(F32({}).ByteSize(), Bytes(4));
  EXPECT_EQ(F32({}).ToString(true), "f32[]");
  EXPECT_EQ(F32({3, 0}).ByteSize(), Bytes(0));
  EXPECT_EQ(MakeTokenShape().ByteSize(), Bytes(0));
  const Shape tuple = MakeTupleShape({shape, F32({2}), MakeTupleShape({})});
  EXPECT_EQ(tuple.ByteSize(), Bytes(2048 + 8));
  EXPECT_EQ(tuple.ToString(), "(bf16[8,128], f32[2], ())");
}

TEST(ShapeTest, OrderInMemory) {
  Shape shape = F32({4096, 9, 3});
  EXPECT_EQ(MinorDimension(shape), 2);
  EXPECT_EQ(MinorDimension(shape, 2), 0);
  EXPECT_EQ(MinorDimension(shape, 3), -1);
  EXPECT_EQ(PhysicalDims(shape), (std::vector<int64_t>{4096, 9, 3}));
  const Shape turned = WithOrder(shape, {0, 2, 1});
  EXPECT_EQ(MinorDimension(turned), 0);
  EXPECT_EQ(PlaceFromMinor(turned, 0), 0);
  EXPECT_EQ(PlaceFromMinor(turned, 1), 2);
  EXPECT_EQ(PhysicalDims(turned), (std::vector<int64_t>{9, 3, 4096}));
  EXPECT_FALSE(SameOrder(shape, turned));
  // Nothing said is row-major.
  EXPECT_TRUE(SameOrder(shape, WithOrder(shape, {})));
  EXPECT_EQ(PhysicalDims(WithOrder(shape, {})), PhysicalDims(shape));
}

TEST(ShapeTest, TypesNarrowerThanAByteArePacked) {
  EXPECT_EQ(MakeShape(PrimitiveType::kS4, {3}).ByteSize(), Bytes(2));  // 12 bits
  EXPECT_EQ(MakeShape(PrimitiveType::kS4, {64}).ByteSize(), Bytes(32));
  EXPECT_EQ(MakeShape(PrimitiveType::kF6E2M3Fn, {8}).ByteSize(), Bytes(6));  // 48 bits
  EXPECT_EQ(MakeShape(PrimitiveType::kF6E2M3Fn, {9}).ByteSize(), Bytes(7));  // 54 bits
}

TEST(ShapeTest, TypeNamesRoundTrip) {
  for (int t = 1; t <= 36; ++t) {
    const auto type = static_cast<PrimitiveType>(t);
    EXPECT_EQ(PrimitiveTypeFromName(PrimitiveTypeName(type)), type) << t;
  }
  EXPECT_EQ(PrimitiveTypeFromName("f7"), std::nullopt);
  EXPECT_TRUE(IsFloating(PrimitiveType::kBf16));
  EXPECT_TRUE(IsIntegral(PrimitiveType::kU4));
  EXPECT_FALSE(IsIntegral(PrimitiveType::kPred));
  EXPECT_TRUE(IsComplex(PrimitiveType::kC64));
}

TEST(ShapeTest, EmptyLayoutIsRowMajor) {
  Shape a = F32({2, 3});
  Shape b = a;
  b.layout.minor_to_major.clear();
  EXPECT_EQ(a, b);
  b.layout.minor_to_major = {0, 1};
  EXPECT_NE(a, b);
  EXPECT_TRUE(SameDims(a, b));
  EXPECT_EQ(b.ToString(true), "f32[2,3]{0,1}");
}

TEST(ShapeTest, Leaves) {
  const Shape shape = MakeTupleShape({F32({1}), MakeTupleShape({F32({2}), F32({3})})});
  const auto leaves = Leaves(shape);
  ASSERT_EQ(leaves.size(), 3u);
  EXPECT_EQ(leaves[2]->dims, std::vector<int64_t>{3});
}

TEST(ShapeProtoTest, LayoutsRoundTrip) {
  pb::ShapeProto proto;
  proto.set_element_type(pb::BF16);
  proto.add_dimensions(1024);
  proto.add_dimensions(2048);
  proto.add_is_dynamic_dimension(false);
  proto.add_is_dynamic_dimension(false);
  pb::LayoutProto& layout = *proto.mutable_layout();
  layout.add_minor_to_major(0);
  layout.add_minor_to_major(1);
  layout.add_tiles()->add_dimensions(8);
  layout.mutable_tiles(0)->add_dimensions(128);
  layout.add_tiles()->add_dimensions(2);
  layout.mutable_tiles(1)->add_dimensions(1);
  layout.set_memory_space(1);
  layout.set_tail_padding_alignment_in_elements(7);  // nothing that we know of
  const auto shape = ShapeFromProto(proto);
  ASSERT_TRUE(shape.ok());
  EXPECT_EQ(shape->ToString(true), "bf16[1024,2048]{0,1:T(8,128)(2,1)S(1)}");
  EXPECT_EQ(ShapeToProto(*shape).SerializeAsString(), proto.SerializeAsString());
}

// HBM to host memory, and where compiled modules keep scalars and semaphores.
TEST(ShapeProtoTest, SpacesOfCompiledModules) {
  pb::ShapeProto proto;
  proto.set_element_type(pb::U32);
  for (int64_t space = 0; space <= 8; ++space) {
    proto.mutable_layout()->set_memory_space(space);
    const auto shape = ShapeFromProto(proto);
    ASSERT_TRUE(shape.ok()) << Message(shape.status());
    EXPECT_EQ(shape->layout.memory_space, space);
  }
}

TEST(ShapeProtoTest, BadShapes) {
  const auto error = [](auto edit) {
    pb::ShapeProto proto;
    proto.set_element_type(pb::F32);
    proto.add_dimensions(4);
    edit(&proto);
    const auto shape = ShapeFromProto(proto);
    return shape.ok() ? "no error" : Message(shape.status());
  };
  EXPECT_EQ(error([](pb::ShapeProto* p) { p->set_element_type(pb::PRIMITIVE_TYPE_INVALID); }),
            "shape without element type");
  EXPECT_EQ(
      error([](pb::ShapeProto* p) { p->set_element_type(static_cast<pb::PrimitiveType>(99)); }),
      "unknown element type number 99");
  EXPECT_EQ(error([](pb::ShapeProto* p) { p->set_dimensions(0, -1); }),
            "negative or unbounded dimension in [-1]");
  EXPECT_EQ(error([](pb::ShapeProto* p) { p->add_is_dynamic_dimension(true); }),
            "dynamic dimension in f32[4]");
  EXPECT_EQ(error([](pb::ShapeProto* p) { p->mutable_layout()->add_minor_to_major(1); }),
            "layout {1} is no permutation of the 1 dimensions of f32[4]");
  for (const int64_t space : {9, 99, -1}) {
    EXPECT_EQ(error([=](pb::ShapeProto* p) { p->mutable_layout()->set_memory_space(space); }),
              "memory space S(" + std::to_string(space) + ") of f32[4] is not known");
  }
  EXPECT_EQ(error([](pb::ShapeProto* p) {
              p->set_dimensions(0, int64_t{1} << 40);
              p->add_dimensions(0);
              p->add_dimensions(int64_t{1} << 40);
            }),
            "array [1099511627776,0,1099511627776] of more than 2^48 elements");
}

}  // namespace
}  // namespace tpusim::hlo
