// In which sharding products want their operands.
#include "workloads/spmd/wanted_axes.h"

#include <gtest/gtest.h>

#include "tests/workloads/spmd/spmd_test_util.h"
#include "workloads/hlo/ir/attributes.h"

namespace tpusim::spmd {
namespace {

using sharding::Sharding;

class WantedAxesTest : public testing::Test {
 protected:
  // Tokens over mesh axis 0, the hidden width over axis 1.
  static Sharding Matrix(const sharding::Axes& rows, const sharding::Axes& columns) {
    Sharding sharding = sharding::Replicated(2);
    sharding.dims[0].axes = rows;
    sharding.dims[1].axes = columns;
    return sharding;
  }
  hlo::Instruction* Dot(int64_t lhs_contracting, int64_t rhs_contracting) {
    hlo::Computation* entry = module_.AddComputation("main");
    hlo::Instruction* a = entry->AddParameter(0, F32({64, 64}), "a");
    hlo::Instruction* b = entry->AddParameter(1, F32({64, 64}), "b");
    hlo::Instruction* dot = entry->Add(hlo::Opcode::kDot, F32({64, 64}), {a, b});
    hlo::DotDims dims;
    dims.lhs_contracting = {lhs_contracting};
    dims.rhs_contracting = {rhs_contracting};
    hlo::SetDotDims(dot, dims);
    return dot;
  }

  hlo::Module module_{"m"};
  sharding::Mesh mesh_ = MeshOf({4, 2});
  const sharding::Axes data_ = {{0, 1, 4}}, tensor_ = {{1, 1, 2}}, none_;
  const std::string d_ = ToString(data_, mesh_), t_ = ToString(tensor_, mesh_);
};

// x [tokens, width] by w [width, hidden], where axis 0 also splits the width of w: the width of x
// cannot have it, as its tokens do.
TEST_F(WantedAxesTest, FreeDimensionsAreThoseOfTheResult) {
  EXPECT_EQ(WantedAxes(*Dot(1, 0), Matrix(data_, tensor_), Matrix(data_, tensor_),
                       Matrix(data_, tensor_), mesh_),
            d_ + ";|;" + t_);
}

// The gradient of x: dy [tokens, hidden] by w, transposed. The hidden width is contracted, and w
// would have it as dy has it, but for the width of the result, if that is split by the same axis.
TEST_F(WantedAxesTest, ContractedOnesAreThoseOfTheOtherOperand) {
  const Sharding dy = Matrix(data_, tensor_), w = Matrix(data_, tensor_);
  EXPECT_EQ(WantedAxes(*Dot(1, 1), dy, w, Matrix(data_, none_), mesh_), d_ + ";" + t_ + "|;" + t_);
  EXPECT_EQ(WantedAxes(*Dot(1, 1), dy, w, Matrix(data_, tensor_), mesh_),
            d_ + ";" + t_ + "|" + t_ + ";");
}

}  // namespace
}  // namespace tpusim::spmd
