// What there is to decide about a program's shardings.
//
// Factor rules say which dimensions of which values are one loop of an operation: sharded alike,
// the operation moves nothing. Taken together over all operations they tie dimensions into classes,
// and of each class there is one thing to decide: by which axes of the mesh it is split.
//
//   y[b, f] = x[b, d] w[d, f]        b: x.0, y.0     d: x.1, w.0     f: w.1, y.1
//
// What an operation needs whole ties nothing. A dimension that is made of several loops (heads x
// width of a head) counts with its major one, along which it is cut. Layers that are copies of each
// other have arguments whose names differ in numbers only: their dimensions are decided together.
#ifndef TPUSIM_WORKLOADS_SHARDING_DECISIONS_H_
#define TPUSIM_WORKLOADS_SHARDING_DECISIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "configs/units.h"
#include "workloads/hlo/ir/ir.h"

namespace tpusim::sharding {

struct Decision {
  // Arguments with such a dimension, numbers of equal ones as *: "params['layers'][*]['up'] 1".
  std::vector<std::string> arguments;
  int64_t least = 0, most = 0;  // elements along it: of the shortest and the longest dimension
  int64_t values = 0;           // that have such a dimension
  Bytes bytes{0};               // of all of them, whole; of its arguments alone:
  Bytes argument_bytes{0};
  // Values that have two such dimensions, of which only one can be split by an axis.
  int64_t conflicts = 0;
};

// Those of arguments, with the most bytes first. Errors: as ShardModule.
absl::StatusOr<std::vector<Decision>> FindDecisions(const hlo::Module& module,
                                                    int64_t num_partitions);

// A line each, with what they are of.
std::string ToString(const std::vector<Decision>& decisions);

}  // namespace tpusim::sharding

#endif  // TPUSIM_WORKLOADS_SHARDING_DECISIONS_H_
