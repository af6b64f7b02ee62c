#include "workloads/lowering/op_places.h"

#include <gtest/gtest.h>

#include "workloads/hlo/io/text_parser.h"

namespace tpusim::lowering {
namespace {

constexpr char kModuleOfPlaces[] = R"(
HloModule m, is_scheduled=true

fused {
  a = f32[256,256] parameter(0)
  b = f32[256,256] parameter(1)
  d = f32[256,256] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="jit(f)/mlp/dot_general" source_file="f.py" source_line=3}
  c = f32[256,256] reshape(d), metadata={op_name="jit(f)/mlp/reshape" source_file="f.py" source_line=4}
  ROOT t = f32[256,256] tanh(c), metadata={op_name="jit(f)/mlp/tanh" source_file="f.py" source_line=5}
}

ENTRY e {
  x = f32[256,256] parameter(0)
  w = f32[256,256] parameter(1)
  copied = f32[256,256] copy(w)
  f = f32[256,256] fusion(x, copied), kind=kOutput, calls=fused, metadata={op_name="jit(f)/mlp/tanh" source_file="f.py" source_line=5}
  ROOT last = f32[256,256] copy(f)
}
)";

TEST(OpPlaces, OfAFusionItsProductAndOfCopiesWhatIsBesideThem) {
  const auto parsed = hlo::ParseHloText(kModuleOfPlaces);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  const isa::PlacesOfOps places = PlacesOfOperations(*parsed->module);
  const isa::SourcePlace product{"jit(f)/mlp/dot_general", "f.py:3"};
  const isa::SourcePlace tanh{"jit(f)/mlp/tanh", "f.py:5"};
  EXPECT_EQ(places.at("f").main, product);
  // The reshape does nothing.
  EXPECT_EQ(places.at("f").covered, (std::vector<isa::SourcePlace>{product, tanh}));
  EXPECT_EQ(places.at("copied").main, product);  // is used there
  EXPECT_EQ(places.at("last").main, product);    // is made there
  EXPECT_FALSE(places.contains("x"));
}

}  // namespace
}  // namespace tpusim::lowering
