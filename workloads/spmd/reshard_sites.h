// The places where a program makes the partitioner move a value between two shardings, although no
// constraint of the program asks for it: what they move, why, and which constraint might avoid it.
//
// Most come from two arguments of an op that are split over one axis of the mesh in different
// dimensions. A product x[B/x, D] w[D, F/x] can be split by B, then w is gathered, or by F, then
// the whole batch is. Propagation has settled that before; a constraint on the result settles it
// otherwise. The same place of equal layers is one site: it has one source line, one pair of
// shardings and one op, and is constrained alike in all of them.
#ifndef TPUSIM_WORKLOADS_SPMD_RESHARD_SITES_H_
#define TPUSIM_WORKLOADS_SPMD_RESHARD_SITES_H_

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "models/isa/program_info.h"
#include "workloads/sharding/propagation/propagate.h"
#include "workloads/sharding/rules/rule.h"
#include "workloads/spmd/argument_data.h"
#include "workloads/spmd/reshard_plan.h"

namespace tpusim::spmd {

// A value that an op needs otherwise than it is.
struct Moved {
  const hlo::Instruction* value = nullptr;  // before partitioning
  const hlo::Instruction* user = nullptr;   // the op; `value` itself: its result is moved
  size_t operand = 0;
  const sharding::ShardingRule* rule = nullptr;  // of the user
};

class ReshardSites {
 public:
  ReshardSites(const sharding::ShardedModule& sharded, const ArgumentData::Callers& callers)
      : in_(sharded), argument_data_(*sharded.module, callers) {}

  // Number of the site, or -1 if the move is none: nothing but slices, or a weight that is gathered
  // for an op that is split otherwise.
  int32_t Note(const Moved& moved, const sharding::Sharding& from, const sharding::Sharding& to,
               const ReshardPlan& plan);
  std::vector<isa::ReshardSite> Take();

 private:
  struct Constraint {
    std::vector<std::string> values;
    sharding::Sharding sharding;
  };
  std::vector<Constraint> ConstraintsFor(const Moved& moved, const sharding::Sharding& from,
                                         const sharding::Sharding& to) const;
  std::string Why(const Moved& moved, const sharding::Sharding& from,
                  const sharding::Sharding& to) const;
  // "argument params['w']" or "" if that is not known.
  std::string OriginOf(const hlo::Instruction* value, int32_t axis) const;
  bool IsCostOfWeights(const Moved& moved, const std::vector<Constraint>& constraints) const;

  const sharding::ShardedModule& in_;
  const ArgumentData argument_data_;
  std::vector<isa::ReshardSite> sites_;
  std::vector<std::vector<Constraint>> constraints_;  // by site
  std::unordered_map<std::string, int32_t> index_;    // looked up, never iterated
};

}  // namespace tpusim::spmd

#endif  // TPUSIM_WORKLOADS_SPMD_RESHARD_SITES_H_
