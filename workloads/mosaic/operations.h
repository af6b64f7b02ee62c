// What the operations of a kernel's body on vectors cost.
#ifndef TPUSIM_WORKLOADS_MOSAIC_OPERATIONS_H_
#define TPUSIM_WORKLOADS_MOSAIC_OPERATIONS_H_

#include <cstdint>
#include <optional>
#include <string_view>

#include "workloads/mosaic/amounts.h"
#include "workloads/mosaic/module.h"

namespace tpusim::mosaic {

enum class Rule {
  kNone,
  kFree,            // names, places, and loads and stores, which go with what they feed
  kElementwise,     // one operation per element of the result
  kTranscendental,  // one of those per element of the result
  kReduction,       // one operation per element that goes in
  kProduct,
};
Rule RuleOf(std::string_view name);

// Its references are what they were before.
bool OnlyReads(std::string_view name);
// Its result names a part of its first operand, a reference.
bool IsView(std::string_view name);
// The last of its block, which hands over what the block gives.
bool IsTerminator(std::string_view name);

int64_t ElementsOf(const Type& type);
// Of an array or of what a reference names; an element has at least one.
int64_t BytesOf(const Type& type);

// nullopt: operands that the arrays do not take.
std::optional<Stage> ProductOf(const Operation& matmul);
// Of an operation that is no product.
Stage StageOf(const Operation& operation, Rule rule);

}  // namespace tpusim::mosaic

#endif  // TPUSIM_WORKLOADS_MOSAIC_OPERATIONS_H_
