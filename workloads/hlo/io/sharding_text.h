// The text forms of shardings and replica groups, as they stand in the file.
//
// For printing only: what they mean is decoded by workloads/sharding and by
// ReplicaGroups().
#ifndef TPUSIM_WORKLOADS_HLO_IO_SHARDING_TEXT_H_
#define TPUSIM_WORKLOADS_HLO_IO_SHARDING_TEXT_H_

#include <string>
#include <string_view>
#include <utility>

#include "workloads/hlo/hlo.pb.h"

namespace tpusim::hlo {

// The types of a sharding that is no list of devices.
inline constexpr std::pair<std::string_view, pb::OpSharding::Type> kShardingTypes[] = {
    {"replicated", pb::OpSharding::REPLICATED}, {"manual", pb::OpSharding::MANUAL},
    {"unknown", pb::OpSharding::UNKNOWN},       {"unreduced", pb::OpSharding::UNREDUCED},
    {"maximal", pb::OpSharding::MAXIMAL},
};

// The words before the number of a group whose shardings are to be alike.
inline constexpr std::string_view kShardAs = "shard_as", kShardLike = "shard_like";

// {devices=[4,1,2]<=[8] last_tile_dim_replicate}, {replicated}, {{...}, {...}},
// {mesh['a'=2,'b'=4], [{'a'}, {}]}
std::string ShardingText(const pb::OpSharding& sharding);

// {{0,1},{2,3}}, [2,4]<=[4,2]T(1,0), mesh['x'=2,'y'=4] {'y'}; "" if there are none.
std::string ReplicaGroupsText(const pb::HloInstructionProto& attrs);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_IO_SHARDING_TEXT_H_
