// The collectives of one compilation, each kind of them lowered once.
//
// A program repeats a few collectives, layer after layer; on a large pod the
// choice of an algorithm and the roles of all devices are worth remembering. What
// differs between equal collectives is their flags, because both may be in flight.
#ifndef TPUSIM_WORKLOADS_LOWERING_COLLECTIVE_LIBRARY_H_
#define TPUSIM_WORKLOADS_LOWERING_COLLECTIVE_LIBRARY_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "configs/config.h"
#include "models/isa/program.h"
#include "workloads/collectives/collective.h"
#include "workloads/hlo/ir/ir.h"

namespace tpusim::lowering {

class CollectiveLibrary {
 public:
  CollectiveLibrary(const configs::Config& config, std::vector<int64_t> device_of_partition,
                    collectives::AlgorithmWishes wishes = {})
      : config_(config),
        device_of_partition_(std::move(device_of_partition)),
        wishes_(std::move(wishes)) {}

  const std::vector<int64_t>& device_of_partition() const { return device_of_partition_; }

  // `collective` is one, or the start of one. Errors: as RequestOf, LowerCollective.
  absl::StatusOr<collectives::CollectiveUse> Estimate(const hlo::Instruction& collective);
  // Always into the same program, which owns the routes.
  absl::StatusOr<collectives::LoweredCollective> Lower(const hlo::Instruction& collective,
                                                       isa::PodProgram& program);
  // About the algorithms of all that was lowered, each sentence once.
  std::vector<std::string> Assumptions() const;

 private:
  struct Entry {
    collectives::CollectiveRequest request;
    std::shared_ptr<const collectives::CollectiveDecision> decision;
    std::optional<collectives::LoweredCollective> lowered;
    int32_t first_flag = 0, flags = 0;  // that `lowered` uses
  };
  // Groups on their devices, and how they lie in the torus.
  struct PlacedGroups {
    std::vector<std::vector<int64_t>> groups;
    std::shared_ptr<const std::vector<collectives::GroupForm>> forms;
  };
  absl::StatusOr<Entry*> Find(const hlo::Instruction& collective);
  absl::StatusOr<const PlacedGroups*> Place(const hlo::Instruction& collective);

  const configs::Config& config_;
  const std::vector<int64_t> device_of_partition_;
  const collectives::AlgorithmWishes wishes_;
  std::map<std::string, Entry> entries_;        // by what makes a collective
  std::map<std::string, PlacedGroups> placed_;  // by what makes groups
};

}  // namespace tpusim::lowering

#endif  // TPUSIM_WORKLOADS_LOWERING_COLLECTIVE_LIBRARY_H_
