// Rematerialisation policies that are stated beside the program: `--remat NAME=POLICY`.
//
// A program under jax.checkpoint that was exported with all values computed again, and with names
// (checkpoint_name), is the program of any policy on these names: `saved` keeps a value for the
// backward pass, `offloaded` keeps it in the memory of the host, `recomputed` leaves it as it is.
// The module is changed before shardings are propagated, to what JAX makes of jax.checkpoint with
// save_only_these_names and save_and_offload_only_these_names (saved_values.h), where it is proven
// that what the backward pass computes again is what the forward pass has computed (congruence.h).
// Else it is refused, with the reason.
//
// The room answers what a program is under another policy of jax.checkpoint; `StatePolicies` is its
// entry point.
#ifndef TPUSIM_WORKLOADS_REMAT_POLICIES_H_
#define TPUSIM_WORKLOADS_REMAT_POLICIES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "configs/units.h"
#include "workloads/hlo/ir/ir.h"

namespace tpusim::remat {

enum class Policy { kSaved, kOffloaded, kRecomputed };
std::string_view ToString(Policy policy);

struct StatedPolicy {
  std::string name;  // * stands for any text
  Policy policy = Policy::kSaved;
  std::string text;  // all of it, for messages
};
// "NAME=saved". Error: the text has another form.
absl::StatusOr<StatedPolicy> ParseStatedPolicy(std::string_view text);

// Applies to each name the first policy that fits it. Errors: a name that the program does not
// have; a value that is not proven equal to one of the forward pass; a name that the program itself
// keeps in another way.
absl::Status StatePolicies(const std::vector<StatedPolicy>& policies, hlo::Module& module);

// The values of a name and what the backward pass does with them.
struct NameUse {
  std::string name;
  int64_t values = 0;      // that the forward pass computes, as often as its loops run
  Bytes bytes;             // of all of them, over all devices
  int64_t recomputed = 0;  // of these, by the backward pass
  int64_t saved = 0, offloaded = 0;
  std::string refused;  // why those that are computed again cannot be kept; empty: they can
};
// Returns the names in the order of the program. The module does not change.
absl::StatusOr<std::vector<NameUse>> NamesOf(const hlo::Module& module);
// Prints them as a table.
std::string ToString(const std::vector<NameUse>& names);

}  // namespace tpusim::remat

#endif  // TPUSIM_WORKLOADS_REMAT_POLICIES_H_
