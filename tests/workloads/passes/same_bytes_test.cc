// A bitcast by MovesNothing leaves every element at its address. Addresses are counted here from
// the definition of tiles, element by element.

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/workloads/passes/small_module.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/passes/layout/order_classes.h"

namespace tpusim::passes {
namespace {

// Returns the address of the element at `index`: whole tiles in row-major order over the order in
// memory, and a tile's elements in row-major order inside of it.
int64_t Address(const hlo::Shape& shape, const Dims& index, const target::Target& target) {
  const Dims tile = target.TileOf(shape);
  int64_t tiles = 0, inside = 0;
  for (int64_t place = shape.rank() - 1; place >= 0; --place) {
    const auto d = static_cast<size_t>(hlo::MinorDimension(shape, place));
    const auto from_minor = static_cast<size_t>(place);
    const int64_t unit = from_minor < tile.size() ? tile[tile.size() - 1 - from_minor] : 1;
    tiles = tiles * CeilDiv(shape.dims[d], unit) + index[d] / unit;
    inside = inside * unit + index[d] % unit;
  }
  int64_t size = 1;
  for (int64_t unit : tile) size *= unit;
  return tiles * size + inside;
}

bool NextIndex(const Dims& dims, Dims& index) {
  for (size_t d = dims.size(); d-- > 0;) {
    if (++index[d] < dims[d]) return true;
    index[d] = 0;
  }
  return false;
}

int64_t Linear(const Dims& dims, const Dims& index) {
  int64_t at = 0;
  for (size_t d = 0; d < dims.size(); ++d) at = at * dims[d] + index[d];
  return at;
}

Dims Index(const Dims& dims, int64_t at) {
  Dims index(dims.size());
  for (size_t d = dims.size(); d-- > 0; at /= dims[d]) index[d] = at % dims[d];
  return index;
}

// Returns the index in the operand of the element of the result at `index`.
Dims Source(const Instruction& i, const Dims& index) {
  const hlo::Shape& from = i.operand(0)->shape();
  if (i.opcode() == Opcode::kReshape) return Index(from.dims, Linear(i.shape().dims, index));
  const Dims dims = hlo::Dimensions(i);
  Dims source(dims.size());
  for (size_t d = 0; d < dims.size(); ++d) source[static_cast<size_t>(dims[d])] = index[d];
  return source;
}

class SameBytesOfRandomShapes : public ::testing::Test {
 protected:
  int64_t Below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  Dims RandomOrder(int64_t rank) {
    Dims order = Identity(rank);
    for (size_t d = order.size(); d > 1; --d) {
      std::swap(order[d - 1], order[static_cast<size_t>(Below(static_cast<int64_t>(d)))]);
    }
    return order;
  }
  Dims RandomDims() {
    static const Dims extents = {1, 1, 2, 3, 4, 8, 9, 16, 24, 128, 130};
    Dims dims;
    int64_t elements = 1;
    for (int64_t rank = 1 + Below(4); rank > 0; --rank) {
      dims.push_back(extents[static_cast<size_t>(Below(static_cast<int64_t>(extents.size())))]);
      elements *= dims.back();
    }
    return elements <= 40000 ? dims : RandomDims();
  }
  // Returns other dimensions for the same elements: some joined, some split, some of extent one.
  Dims RandomReshape(const Dims& dims) {
    Dims result;
    for (int64_t extent : dims) {
      if (!result.empty() && Below(3) == 0) {
        result.back() *= extent;
      } else if (extent % 8 == 0 && Below(4) == 0) {
        result.insert(result.end(), {extent / 8, 8});
      } else {
        result.push_back(extent);
      }
      if (Below(5) == 0) result.push_back(1);
    }
    return result;
  }
  void Check(const Instruction& i) {
    if (!MovesNothing(i, m_.target())) return;
    ++bitcasts_;
    Dims index(i.shape().dims.size(), 0);
    do {
      ASSERT_EQ(Address(i.shape(), index, m_.target()),
                Address(i.operand(0)->shape(), Source(i, index), m_.target()))
          << i.operand(0)->shape().ToString(true) << " to " << i.shape().ToString(true);
    } while (NextIndex(i.shape().dims, index));
  }

  SmallModule m_;
  std::mt19937_64 random_{1};
  int64_t bitcasts_ = 0;
};

TEST_F(SameBytesOfRandomShapes, BitcastsKeepEveryAddress) {
  const PrimitiveType types[] = {PrimitiveType::kF32, PrimitiveType::kBf16, PrimitiveType::kS8};
  for (int n = 0; n < 6000; ++n) {
    const PrimitiveType type = types[n % 3];
    Instruction* x = m_.Parameter(RandomDims(), type);
    x->set_shape(hlo::WithOrder(x->shape(), RandomOrder(x->shape().rank())));
    const bool reshapes = n % 2 == 0;
    Dims dims = x->shape().dims;
    Dims permutation;
    if (reshapes) {
      dims = RandomReshape(dims);
    } else {
      permutation = RandomOrder(x->shape().rank());
      for (size_t d = 0; d < dims.size(); ++d) {
        dims[d] = x->shape().dims[static_cast<size_t>(permutation[d])];
      }
    }
    Instruction* i = m_.Add(reshapes ? Opcode::kReshape : Opcode::kTranspose, dims, {x});
    if (!reshapes) hlo::SetDimensions(i, permutation);
    // In the order in which nothing should move, and in any.
    const Dims order = hlo::MinorToMajor(x->shape());
    Dims alike = reshapes ? OrderThroughReshape(x->shape().dims, dims, order)
                          : Compose(order, Inverse(permutation));
    if (!alike.empty()) {
      i->set_shape(hlo::WithOrder(i->shape(), alike));
      ASSERT_NO_FATAL_FAILURE(Check(*i));
    }
    i->set_shape(hlo::WithOrder(i->shape(), RandomOrder(i->shape().rank())));
    ASSERT_NO_FATAL_FAILURE(Check(*i));
  }
  EXPECT_GT(bitcasts_, 3000);
}

}  // namespace
}  // namespace tpusim::passes
