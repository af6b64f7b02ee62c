// Shardings that a user fixes or forbids: `--fix ARGUMENT=SPEC`, `--forbid ARGUMENT=SPEC`.
//
//   --fix "params/*/up=P('data', 'model')"     both dimensions
//   --fix "params/*/up=P(?, 'model')"          the second one; what the first is split by is open
//   --forbid "tokens=P(?, 'model')"            all but that
//
// ARGUMENT is the name that the program has for it, params['layers'][0]['up'], or the same as a
// path, params/layers/0/up; a `*` in ARGUMENT matches any text. A dimension that SPEC leaves out is
// whole if it is fixed, and open if it is forbidden. An axis that is named has to split: meshes
// where it has size 1 do not count. Dimensions that are decided together are fixed together.
#ifndef TPUSIM_WORKLOADS_SEARCH_STATED_DIMS_H_
#define TPUSIM_WORKLOADS_SEARCH_STATED_DIMS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "workloads/sharding/decisions/decisions.h"

namespace tpusim::search {

struct StatedDims {
  std::string argument;
  std::vector<std::optional<std::vector<std::string>>> dims;  // axes; nullopt: open
  std::string text;                                           // all of it, for messages
};

// Error: a text of another form.
absl::StatusOr<StatedDims> ParseStatedDims(std::string_view text);

// A statement about one decision of the program.
struct StatedDim {
  int32_t decision = -1;
  std::vector<std::string> axes;
  std::string text;
};

// Returns what is stated of the program's decisions. Errors: no argument of that name, more
// dimensions than it has; `option` is named. With --fix: two statements that differ.
absl::StatusOr<std::vector<StatedDim>> DimsOf(std::string_view option,
                                              const std::vector<StatedDims>& stated,
                                              const sharding::Decisions& program);

// params['layers'][0].up as params/layers/0/up.
std::string PathOf(std::string_view name);

// Why no mesh is left where choices are fixed or forbidden.
std::string NothingLeft(const std::vector<StatedDims>& fixed,
                        const std::vector<StatedDims>& forbidden,
                        const std::vector<std::vector<sharding::MeshAxis>>& meshes);

}  // namespace tpusim::search

#endif  // TPUSIM_WORKLOADS_SEARCH_STATED_DIMS_H_
