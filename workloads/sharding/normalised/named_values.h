// Values of a program, found by what a user calls them.
//
//   dot_general.3            the name that `tpusim compile --emit sharded` shows, or a glob
//   attention_out            a name of checkpoint_name: all values that have it, also those that
//                            are computed again
//   decoder/mlp/dot_general  the end of a path of scopes (jax.named_scope, the functions that are
//                            called, the primitive), or a glob of it
//   model.py:42              what the program has a with_sharding_constraint for in that line
#ifndef TPUSIM_WORKLOADS_SHARDING_NORMALISED_NAMED_VALUES_H_
#define TPUSIM_WORKLOADS_SHARDING_NORMALISED_NAMED_VALUES_H_

#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "workloads/hlo/ir/ir.h"

namespace tpusim::sharding {

struct NormalisedModule;

class NamedValues {
 public:
  // Notes the values of the module as it is now; it must live as long.
  explicit NamedValues(const NormalisedModule& module);

  // Arrays, in the order of the program; none: nothing is called so.
  std::vector<hlo::Instruction*> Find(const std::string& pattern) const;
  // Returns an error: an option, given in full, states a pattern that no value has as its name.
  absl::Status Missing(const std::string& option, const std::string& pattern) const;

 private:
  const NormalisedModule& module_;
  std::vector<hlo::Instruction*> arrays_;
  std::unordered_map<std::string, hlo::Instruction*> by_name_;
  std::unordered_map<const hlo::Instruction*, std::vector<std::string>> names_;
};

}  // namespace tpusim::sharding

#endif  // TPUSIM_WORKLOADS_SHARDING_NORMALISED_NAMED_VALUES_H_
