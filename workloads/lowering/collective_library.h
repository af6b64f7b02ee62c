// The collectives of one compilation, each kind of them lowered once.
//
// A program repeats a few collectives, layer after layer; on a large pod the roles of
// all devices are worth remembering. What differs between equal collectives is their
// flags, because both may be in flight.
#ifndef TPUSIM_WORKLOADS_LOWERING_COLLECTIVE_LIBRARY_H_
#define TPUSIM_WORKLOADS_LOWERING_COLLECTIVE_LIBRARY_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/isa/program.h"
#include "workloads/collectives/collective.h"
#include "workloads/cost/collective_decisions.h"
#include "workloads/hlo/ir/ir.h"

namespace tpusim::lowering {

class CollectiveLibrary {
 public:
  // The decisions must live as long.
  explicit CollectiveLibrary(cost::CollectiveDecisions& decisions) : decisions_(decisions) {}

  const std::vector<int64_t>& device_of_partition() const {
    return decisions_.device_of_partition();
  }

  // Always into the same program, which owns the routes. `collective` is one, or the
  // start of one. Errors: as CollectiveDecisions::Find.
  absl::StatusOr<collectives::LoweredCollective> Lower(const hlo::Instruction& collective,
                                                       isa::PodProgram& program);
  // Returns what an opaque kernel sends to other devices by itself.
  //
  // A Pallas kernel may start DMAs to other chips. Its cost says how many bytes a device
  // sends, not to which device: they are taken as sent to the next partition, as in the rings
  // that such kernels are mostly written for, while the kernel runs.
  struct RemoteDma {
    collectives::LoweredCollective lowered;
    Bytes bytes{0};  // that every device sends
  };
  // None where the instruction sends nothing, or there is no other device. Errors: as
  // CustomCostOf.
  absl::StatusOr<std::optional<RemoteDma>> LowerRemoteDma(const hlo::Instruction& kernel,
                                                          isa::PodProgram& program) const;
  // About the algorithms of all that was lowered, each sentence once.
  std::vector<std::string> Assumptions() const;

 private:
  struct KnownCollective {
    std::shared_ptr<const collectives::CollectiveDecision> decision;
    collectives::LoweredCollective lowered;
    int32_t first_flag = 0, flags = 0;  // that `lowered` uses
  };

  cost::CollectiveDecisions& decisions_;
  std::map<std::string, KnownCollective> lowered_;  // by key of the decision
};

}  // namespace tpusim::lowering

#endif  // TPUSIM_WORKLOADS_LOWERING_COLLECTIVE_LIBRARY_H_
