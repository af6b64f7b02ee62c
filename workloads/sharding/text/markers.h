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

// A custom call of that target.
bool IsTarget(const hlo::Instruction& instruction, std::string_view target);
// Returns the shardings that an instruction states, one per leaf of `shape`; nullopt if it states
// none. Shardy's text first: the other encoding has no open dimensions, priorities or names. Errors
// name the instruction.
absl::StatusOr<std::optional<std::vector<DecodedSharding>>> SaidBy(
    const hlo::Instruction& instruction, const hlo::Shape& shape, const MeshTable& table);
// The list in one of the attributes above; its absence is an error.
absl::StatusOr<std::vector<Sharding>> ShardingList(const hlo::Instruction& marker,
                                                   const char* attribute, const MeshTable& table);
// `status` with the instruction's name in front.
absl::Status In(const hlo::Instruction& instruction, const absl::Status& status);
// The source line, or the name if there is none.
std::string At(const hlo::Instruction& instruction);
// A marker that has been dealt with: everybody uses `with` (unless null), and it
// is no side effect any more, so that it goes with the dead.
void Retire(hlo::Instruction* marker, hlo::Instruction* with);

}  // namespace tpusim::sharding

#endif  // TPUSIM_WORKLOADS_SHARDING_TEXT_MARKERS_H_
