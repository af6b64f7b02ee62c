// The one product of a kernel as the systolic arrays see it.
#ifndef TPUSIM_WORKLOADS_KERNELS_VIEW_PRODUCT_H_
#define TPUSIM_WORKLOADS_KERNELS_VIEW_PRODUCT_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "models/isa/program.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/target/target.h"

namespace tpusim::kernels {

// batch x [m,k] x [k,n]. A dot is that by itself. A ragged dot has one product
// per group, all of one size unless the user stated others. A convolution is one product over all
// taps of its window: k is taps x input features, of few features several taps beside each other in
// the rows of the array, of many each tap in rows of its own, and no patches are materialised. The
// left side is then much smaller in memory than m x k.
struct Product {
  int64_t batch = 1, m = 1, k = 1, n = 1;
  // Sizes that differ, of the groups that `m` rows (or `k`, if set) fall into; `m`
  // (or `k`) is then the largest. Each group is padded to whole blocks.
  std::vector<int64_t> groups;
  bool groups_of_k = false;
  isa::NumberFormat format = isa::NumberFormat::kBf16;
  int64_t repeats = 1;  // products of the format that a complex or a 64-bit one takes
  // Bytes in memory over bytes of the sides as products see them.
  double lhs_density = 1, rhs_density = 1;
  // A convolution's windows overlap: a block of rows of the output needs
  // `halo_rows` more rows of input than it has itself, of `row_elements` outputs.
  int64_t halo_rows = 0, row_elements = 1;
  // Few features, of all taps beside each other in registers on their way to the arrays.
  bool packs_taps = false;
};

// The extent that falls into groups, all of them together.
int64_t AllRows(const Product& product);
int64_t AllDepth(const Product& product);

using hlo::IsProduct;

// The role of a spatial dimension of a convolution in a product that is written as one.
enum class Role { kBatch, kRows, kColumns, kDepth, kWindow };

// Returns the role of every spatial dimension; empty for a product that is no convolution.
std::vector<Role> RolesOfPositions(const hlo::Instruction& product);

// Returns the first product of the members (in post-order), or the last one that is computed from it;
// or null. A kernel that multiplies twice, in modules of the TPU compiler, is around the second one.
const hlo::Instruction* OuterProduct(std::span<const hlo::Instruction* const> members);

// The product that a kernel of `instruction` is around, a fusion or a product itself; or null.
const hlo::Instruction* ProductIn(const hlo::Instruction& instruction);

// Products that would leave the arrays idle are multiplied and added up on the
// vector units instead: one row by a matrix (as the TPU compiler does),
// convolutions whose groups have one feature, and products of arrays without elements.
bool RunsOnVectorUnits(const hlo::Instruction& product);

// Error (no rule): a dtype that the arrays have no rule for.
absl::StatusOr<Product> ProductOf(const hlo::Instruction& instruction,
                                  const target::Target& target);

// Returns the product with its left side in the arrays: rows are columns.
Product Exchanged(const Product& product);

// The gradient of a convolution's weights with the input as the weights that stay in the arrays,
// where its features are the columns; nothing for other products.
std::optional<Product> TurnedGradient(const hlo::Instruction& instruction, const Product& product,
                                      const target::Target& target);

}  // namespace tpusim::kernels

#endif  // TPUSIM_WORKLOADS_KERNELS_VIEW_PRODUCT_H_
