// The members of groups as rings: permutes that move every value on by one member.
#ifndef TPUSIM_WORKLOADS_PASSES_COLLECTIVES_RING_H_
#define TPUSIM_WORKLOADS_PASSES_COLLECTIVES_RING_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "workloads/hlo/ir/ir.h"

namespace tpusim::passes {

class Ring {
 public:
  // Groups of partitions, all of one size. `axes` are those of the mesh along which they lie, for
  // the report; permutes take channels from `channel` on and name the place of the program that the
  // collective comes from, if it has one (annotations::kReshardSite).
  Ring(const std::vector<std::vector<int64_t>>& groups, std::string axes, int64_t channel,
       std::optional<int64_t> reshard_site = std::nullopt)
      : groups_(groups), axes_(std::move(axes)), channel_(channel), reshard_site_(reshard_site) {}

  int64_t members() const { return static_cast<int64_t>(groups_[0].size()); }
  int64_t next_channel() const { return channel_; }

  // s32[]: the number of the executing device in its group. `like` gives the metadata.
  hlo::Instruction* Position(hlo::Computation* computation, const hlo::Instruction& like) const;

  // s32[]: where its part of an array begins, of `extent` elements each.
  hlo::Instruction* Begin(hlo::Computation* computation, int64_t extent,
                          const hlo::Instruction& like) const;

  enum class Way { kUp, kDown };  // to the next member, to the one before
  hlo::Instruction* Permute(hlo::Instruction* value, Way way, const hlo::Instruction& like);

 private:
  const std::vector<std::vector<int64_t>>& groups_;
  const std::string axes_;
  int64_t channel_;
  const std::optional<int64_t> reshard_site_;
};

// Numbers for the channels of collectives that a pass adds.
//
// The number of the first channel that no collective of the module has, nor a later one.
int64_t FirstFreeChannel(const hlo::Module& module);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_COLLECTIVES_RING_H_
