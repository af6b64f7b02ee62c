// What a pass that makes a loop says to the layout: how elements of its state lie.
#ifndef TPUSIM_WORKLOADS_PASSES_PIPELINE_ELEMENT_ORDERS_H_
#define TPUSIM_WORKLOADS_PASSES_PIPELINE_ELEMENT_ORDERS_H_

#include <string_view>

namespace tpusim::passes {

// The frontend attribute of a loop with the orders in which elements of its state lie, whatever the
// arrays around it lie like: "3:1,2,0;5:2,1,0" has the dimensions of elements 3 and 5, fastest
// first.
//
// The TPU compiler lays out the loops of windowed einsums before what is around them. The operand
// that is there whole is row-major, and so is a result that is added up; the dimension of which
// pieces are cut out, put in or summed up is not the fastest. (So have it all 148 loops of train
// steps of Qwen3-8B that libtpu 0.0.42.1 compiled for v6e 2x4, scanned and unrolled.) What lies
// otherwise before is copied, and what comes out is copied into the order of its users.
inline constexpr std::string_view kElementOrders = "tpusim.element_orders";

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_PIPELINE_ELEMENT_ORDERS_H_
