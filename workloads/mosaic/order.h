// The order of products and reductions in the body of a kernel.
//
// An array of the chip holds a tile of a product's right-hand side while all rows of the left-hand
// side stream through it. The last column of a row is therefore there when the last tile has gone
// through, and the first tile wants a column of every row. Two things follow:
//
//     a reduction over what a product made ends a stage: a row is complete when the product is;
//     a product of what waited for such a reduction begins another: softmax has to be through with
//     all rows.
//
// A region that is unrolled has several such chains, one for each product of its first stage. They
// overlap: while one waits for its softmax, the product of the next one runs, so of all waits only
// those of one chain are exposed.
//
// Anything else may stream: elementwise work on the result of a product, or into the operand of
// one, runs beside it. Attention has three stages forward (scores and their largest; exponentials;
// the product with the values) and one backward, where the sums are known before.
#ifndef TPUSIM_WORKLOADS_MOSAIC_ORDER_H_
#define TPUSIM_WORKLOADS_MOSAIC_ORDER_H_

#include <algorithm>

namespace tpusim::mosaic {

// When a value is there.
struct Order {
  int stage = 0;
  bool streams = false;  // it is made of a product of this very stage
};

// When both are there.
inline Order Together(Order a, Order b) {
  if (a.stage != b.stage) return a.stage > b.stage ? a : b;
  return {a.stage, a.streams || b.streams};
}

// When a product of such operands runs; its result streams.
inline Order OfProduct(Order operands) {
  const bool waited = operands.stage > 0 && !operands.streams;
  return {operands.stage + (waited ? 1 : 0), true};
}

// When the result of a reduction is there.
inline Order AfterReduction(Order operand) {
  return operand.streams ? Order{operand.stage + 1, false} : operand;
}

}  // namespace tpusim::mosaic

#endif  // TPUSIM_WORKLOADS_MOSAIC_ORDER_H_
