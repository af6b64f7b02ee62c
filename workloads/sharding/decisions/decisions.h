// The decisions that a program leaves open about its shardings.
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
// So are the layers of several arguments that one loop takes a layer of at a time.
//
// Where two decisions give one axis to two dimensions of a value, only one of these can have it: a
// conflict. Propagation settles it; a constraint at the places where such values are made settles
// it otherwise.
//
// The room answers what there is to choose about the shardings of a program; `FindDecisions` is its
// entry point.
#ifndef TPUSIM_WORKLOADS_SHARDING_DECISIONS_DECISIONS_H_
#define TPUSIM_WORKLOADS_SHARDING_DECISIONS_DECISIONS_H_

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "configs/units.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/sharding/normalised/normalise.h"

namespace tpusim::sharding {

// A dimension of fewer bytes than this share of the largest of its kind is no decision.
constexpr double kLeastShare = 0.005;

struct Decision {
  // A dimension of its largest argument: "params['layers'][*]['up'] 1"; each is another.
  std::string name;
  // Arguments with such a dimension, numbers of equal ones as *, as the name is written.
  std::vector<std::string> arguments;
  int64_t least = 0, most = 0;  // elements along it: of the shortest and the longest dimension
  // The number of parts that the dimensions of its arguments can be split into. Dimensions of less
  // than kLeastShare of the bytes of the largest do not count; they are split as far as they can
  // be.
  int64_t divisor = 0;
  int64_t values = 0;  // that have such a dimension
  Bytes bytes{0};      // of all of them, whole; of its arguments alone:
  Bytes argument_bytes{0};
  // Values that have two such dimensions, of which only one can be split by an axis.
  int64_t conflicts = 0;
};

// A value that a constraint can be stated for: one outside of a shard_map. Of a conflict: a value
// where both of a pair of decisions meet: none of what it is made of has both.
struct ConstraintPlace {
  std::string value;  // as `tpusim compile --emit sharded` names it
  std::string source, scope;
  hlo::Shape shape;
  std::vector<int32_t> decisions;  // by dimension, -1: none
  bool is_result = false;          // of the program
};

// Two decisions that values have dimensions of.
struct Conflict {
  int32_t first = 0, second = 0;  // of the decisions, ascending
  int64_t values = 0;
  Bytes bytes{0};  // of these values, whole
  std::vector<ConstraintPlace> places;
};

// Values that a constraint may be put on, whatever is decided: all that a user calls by one name.
struct NamedValue {
  std::string name;  // as it was asked for
  std::vector<ConstraintPlace> places;
  // The number of parts that all of them can be split into, by dimension; 1: none can.
  std::vector<int64_t> divisors;
};

// The decisions and axes that can split an operation or a value of the program: decisions about any
// of its dimensions, also where only a part of one is meant, the axes that the program itself
// states for such dimensions, those of a shard_map for what goes in and comes out, and constraints
// on named values.
struct SplittableBy {
  std::set<int32_t> decisions;
  std::set<std::string> axes;
  std::set<std::string> manual;                 // and what is stated inside of a shard_map
  std::set<std::pair<int32_t, int32_t>> named;  // value, dimension
};

// An argument of the program, with the decision about each dimension; -1: there is none.
struct DecidedArgument {
  std::string name;
  hlo::Shape shape;
  std::vector<int32_t> decisions;
  SplittableBy reach;  // what may split it where it is used
};

// A dot or convolution of the normalised module.
struct DecidedProduct {
  std::string name;
  std::set<int32_t> loops;  // decisions about its own dimensions, each of which splits all of it
  SplittableBy reach;
};

struct Decisions {
  std::vector<Decision> all;               // with the most bytes first
  std::vector<DecidedArgument> arguments;  // of the program, in order
  std::vector<Conflict> conflicts;         // with the most bytes first
  // Constraints of the program outside of a shard_map, and results whose sharding it states.
  std::vector<ConstraintPlace> constraints;
  std::vector<NamedValue> named;  // those that are asked for
  std::vector<DecidedProduct> products;
};

// `named`: what values are called (named_values.h) that may get constraints of their own. Errors:
// an operation without a rule; a name that no array has, or arrays with different numbers of
// dimensions.
absl::StatusOr<Decisions> FindDecisions(const NormalisedModule& module,
                                        const std::vector<std::string>& named = {});

// "params['layers'][3]['up']" as "params['layers'][*]['up']".
std::string WithoutNumbers(const std::string& name);

// A line for each decision and each conflict, with what they are of.
std::string ToString(const Decisions& decisions);

}  // namespace tpusim::sharding

#endif  // TPUSIM_WORKLOADS_SHARDING_DECISIONS_DECISIONS_H_
