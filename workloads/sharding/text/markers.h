// The custom calls and attributes by which JAX and XLA speak of shardings.
#ifndef TPUSIM_WORKLOADS_SHARDING_TEXT_MARKERS_H_
#define TPUSIM_WORKLOADS_SHARDING_TEXT_MARKERS_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/sharding/text/decode.h"

namespace tpusim::sharding {

inline constexpr char kShardingAttribute[] = "xla.sdy.sharding";
inline constexpr char kInShardings[] = "xla.sdy.in_shardings";
inline constexpr char kOutShardings[] = "xla.sdy.out_shardings";
inline constexpr char kManualAxes[] = "xla.sdy.manual_axes";
inline constexpr char kShardingGroupId[] = "xla.sdy.sharding_group_id";
inline constexpr char kAllowedDirection[] = "xla.sdy.allowed_direction";

inline constexpr char kConstraint[] = "Sharding";
inline constexpr char kResultConstraint[] = "xla.sdy.FuncResultSharding";
inline constexpr char kGroupMarker[] = "xla.sdy.ShardingGroup";
inline constexpr char kBarrierMarker[] = "xla.sdy.PropagationBarrier";
// Shardy's boundary of a manual region, of all values at once...
inline constexpr char kGlobalToLocal[] = "xla.sdy.GlobalToLocalShape";
inline constexpr char kLocalToGlobal[] = "xla.sdy.LocalToGlobalShape";
// ... and the older partitioner's, one per value.
inline constexpr char kFullToShard[] = "SPMDFullToShardShape";
inline constexpr char kShardToFull[] = "SPMDShardToFullShape";

// Returns whether this is a custom call to `target`.
bool IsTarget(const hlo::Instruction& instruction, std::string_view target);
// Returns the shardings that an instruction states, one per leaf of `shape`; nullopt if it states
// none. Shardy's text first: the other encoding has no open dimensions, priorities or names. Errors
// name the instruction.
absl::StatusOr<std::optional<std::vector<DecodedSharding>>> SaidBy(
    const hlo::Instruction& instruction, const hlo::Shape& shape, const MeshTable& table);
// Returns the list in one of the attributes above. Error: the marker has none.
absl::StatusOr<std::vector<Sharding>> ShardingList(const hlo::Instruction& marker,
                                                   const char* attribute, const MeshTable& table);
// Returns `status` with the instruction's name in front.
absl::Status In(const hlo::Instruction& instruction, const absl::Status& status);
// Returns the source line of an instruction, or its name if it has none.
std::string At(const hlo::Instruction& instruction);
// Ends a marker that has been read: its users get `with` (unless null), and it has no side effect
// any more, so that dead code elimination removes it.
void Retire(hlo::Instruction* marker, hlo::Instruction* with);

}  // namespace tpusim::sharding

#endif  // TPUSIM_WORKLOADS_SHARDING_TEXT_MARKERS_H_
