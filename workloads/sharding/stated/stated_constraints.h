// Sharding constraints that are stated beside the program: `--constrain VALUE=SHARDING`.
//
// A constraint is put into the normalised module as if the program had a
// `jax.lax.with_sharding_constraint` there: a copy of the value, closed, that all its users take
// instead. Propagation then goes on from it. Where the program has a constraint itself, or says how
// its result is sharded, that is replaced. VALUE is what the value is called (named_values.h), or
// several of these with commas. SHARDING is written as a PartitionSpec, P('x', None, ('y', 'z')),
// or as tpusim prints it, [{x}, {}, {y,z}].
#ifndef TPUSIM_WORKLOADS_SHARDING_STATED_STATED_CONSTRAINTS_H_
#define TPUSIM_WORKLOADS_SHARDING_STATED_STATED_CONSTRAINTS_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "configs/name_value.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/sharding/types/sharding.h"

namespace tpusim::sharding {

struct NormalisedModule;

struct StatedConstraint {
  std::vector<std::string> values;  // names or globs
  // Per dimension the axes that split it, as they are written: "x", or "x:(1)2" for a part of x.
  std::vector<std::vector<std::string>> dims;
  bool is_spec = false;  // a PartitionSpec: dimensions that it leaves out are whole
  std::string text;      // all of it, for messages
};

// VALUE and SHARDING of a text; nothing: it has another form.
std::optional<configs::NameAndValue> ParseValueAndSharding(std::string_view text);

// Error: the text has another form.
absl::StatusOr<StatedConstraint> ParseStatedConstraint(std::string_view text);

// Errors: no array of that name, an axis that the mesh has not or that is used twice, another
// number of dimensions.
absl::Status StateConstraints(const std::vector<StatedConstraint>& constraints,
                              NormalisedModule& module);

// Returns the sharding of that value, as `option` states it. Errors are those of StateConstraints.
absl::StatusOr<Sharding> ShardingOf(std::string_view option, const StatedConstraint& stated,
                                    const hlo::Instruction& value, const Mesh& mesh);

// P('x', None) of the names of axes by dimension.
std::string SpecText(const std::vector<std::vector<std::string>>& dims);

// P('x', None) of a sharding, to write into a program. Parts of axes have no such form: then as
// ToString(sharding, mesh).
std::string SpecText(const Sharding& sharding, const Mesh& mesh);

}  // namespace tpusim::sharding

#endif  // TPUSIM_WORKLOADS_SHARDING_STATED_STATED_CONSTRAINTS_H_
