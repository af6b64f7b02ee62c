// Collectives of HLO as the algorithms see them: bytes and groups of devices.
#ifndef TPUSIM_WORKLOADS_COST_COLLECTIVE_REQUEST_H_
#define TPUSIM_WORKLOADS_COST_COLLECTIVE_REQUEST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "workloads/collectives/collective.h"
#include "workloads/hlo/ir/ir.h"

namespace tpusim::cost {

// Mesh axes over which a collective goes, for the report; may be empty.
std::string AxesOf(const hlo::Instruction& collective);

// The request behind a collective (or its start), on physical devices; its groups
// are left to GroupsOf.
absl::StatusOr<collectives::CollectiveRequest> RequestOf(
    const hlo::Instruction& instruction, const std::vector<int64_t>& device_of_partition);
absl::StatusOr<std::vector<std::vector<int64_t>>> GroupsOf(
    const hlo::Instruction& collective, const std::vector<int64_t>& device_of_partition);

// Equal for collectives with the same groups.
std::string GroupsKeyOf(const hlo::Instruction& collective);

}  // namespace tpusim::cost

#endif  // TPUSIM_WORKLOADS_COST_COLLECTIVE_REQUEST_H_
