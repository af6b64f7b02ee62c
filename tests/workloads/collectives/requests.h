// Collectives and slices that tests ask for.
#ifndef TPUSIM_TESTS_WORKLOADS_COLLECTIVES_REQUESTS_H_
#define TPUSIM_TESTS_WORKLOADS_COLLECTIVES_REQUESTS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "configs/config.h"
#include "workloads/collectives/box.h"
#include "workloads/collectives/collective.h"

namespace tpusim::collectives {

// Kinds of collectives of groups: not permutations.
inline constexpr CollectiveKind kGroupKinds[] = {
    CollectiveKind::kAllReduce, CollectiveKind::kAllGather, CollectiveKind::kReduceScatter,
    CollectiveKind::kAllToAll};

inline configs::Config V5e(const std::string& slice) {
  return *configs::LoadConfig("v5e-" + slice, {});
}

inline CollectiveRequest Request(CollectiveKind kind, std::vector<std::vector<int64_t>> groups,
                                 int64_t bytes) {
  CollectiveRequest request;
  request.kind = kind;
  request.name = "op.1";
  request.groups = std::move(groups);
  request.operand_bytes = Bytes(bytes);
  return request;
}

inline CollectiveRequest Along(const configs::Config& config, CollectiveKind kind,
                               const std::vector<int>& axes, int64_t bytes) {
  return Request(kind, GroupsAlong(config.topology, axes), bytes);
}

}  // namespace tpusim::collectives

#endif  // TPUSIM_TESTS_WORKLOADS_COLLECTIVES_REQUESTS_H_
