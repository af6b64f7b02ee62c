// Decides how collectives are done, each kind of them once.
//
// A program repeats a few collectives, layer after layer; on a large pod where groups lie
// and the choice of an algorithm are worth remembering. Two collectives are the same
// here if they differ in name and place only.
#ifndef TPUSIM_WORKLOADS_COST_COLLECTIVE_DECISIONS_H_
#define TPUSIM_WORKLOADS_COST_COLLECTIVE_DECISIONS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "configs/config.h"
#include "workloads/collectives/collective.h"
#include "workloads/hlo/ir/ir.h"

namespace tpusim::cost {

class CollectiveDecisions {
 public:
  // The configuration must live as long.
  CollectiveDecisions(const configs::Config& config, std::vector<int64_t> device_of_partition,
                      collectives::AlgorithmOverrides overrides = {})
      : config_(config),
        device_of_partition_(std::move(device_of_partition)),
        overrides_(std::move(overrides)) {}

  const configs::Config& config() const { return config_; }
  const std::vector<int64_t>& device_of_partition() const { return device_of_partition_; }
  const collectives::AlgorithmOverrides& overrides() const { return overrides_; }

  struct KeyedDecision {
    std::string key;  // of what makes a collective
    collectives::CollectiveRequest request;
    std::shared_ptr<const collectives::CollectiveDecision> decision;
  };
  // `collective` is one, or the start of one; the entry lives as long as this.
  // Errors: as RequestOf, GroupsOf, collectives::DecideCollective.
  absl::StatusOr<const KeyedDecision*> Find(const hlo::Instruction& collective);

  // Returns CollectiveGroups::filled_extents of a group of partitions.
  const std::vector<int64_t>& FilledExtents(const std::vector<int64_t>& partitions);

  // Returns whether all that passes have asked of this has the same answer in `there`, for the same
  // program on another slice of the same chip or on other devices: what each collective keeps busy
  // and which groups fill what. It is found by closed forms; `there` keeps what it had to decide.
  bool SameIn(CollectiveDecisions& there) const;

 private:
  // Groups on their devices, and how they lie in the torus.
  struct PlacedGroups {
    std::vector<std::vector<int64_t>> groups;
    std::shared_ptr<const std::vector<collectives::GroupForm>> forms;
  };
  absl::StatusOr<const PlacedGroups*> Place(const hlo::Instruction& collective);
  // Returns the same request on the devices of `there`.
  collectives::CollectiveRequest MovedTo(CollectiveDecisions& there,
                                         collectives::CollectiveRequest request) const;

  const configs::Config& config_;
  const std::vector<int64_t> device_of_partition_;
  const collectives::AlgorithmOverrides overrides_;
  std::map<std::string, KeyedDecision> entries_;
  std::map<std::string, PlacedGroups> placed_;  // by what makes groups
  std::map<std::vector<int64_t>, std::vector<int64_t>> filled_;  // extents, by partitions
};

// Collectives of HLO as the algorithms see them: bytes and groups of devices.
//
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

#endif  // TPUSIM_WORKLOADS_COST_COLLECTIVE_DECISIONS_H_
