// Writes one computation of the per-device module.
//
// Everything that is added takes the metadata of the current source
// instruction, so that a collective can be traced back to the line of the
// program that caused it. Knows the mesh: coordinates of the executing device,
// groups along axes, collectives over them.
//
// The room answers how the partitioner writes HLO, and nothing about what it should write;
// `Builder` is its entry point.
#ifndef TPUSIM_WORKLOADS_SPMD_EMIT_BUILDER_H_
#define TPUSIM_WORKLOADS_SPMD_EMIT_BUILDER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "workloads/hlo/ir/ir.h"
#include "workloads/sharding/types/axes.h"
#include "workloads/sharding/types/sharding.h"

namespace tpusim::spmd {

class Builder {
 public:
  Builder(hlo::Computation* computation, const sharding::Mesh& mesh)
      : computation_(computation), mesh_(mesh) {}

  hlo::Computation* computation() const { return computation_; }
  hlo::Module* module() const { return computation_->parent(); }
  const sharding::Mesh& mesh() const { return mesh_; }
  void set_source(const hlo::Instruction* source) { source_ = source; }
  const hlo::Instruction* source() const { return source_; }
  // Collectives that are added name it (annotations::kReshardSite); -1: none.
  void set_reshard_site(int32_t site) { reshard_site_ = site; }

  // Adds an instruction with the source's metadata, and nothing else of it.
  hlo::Instruction* Add(hlo::Opcode opcode, hlo::Shape shape,
                        std::vector<hlo::Instruction*> operands, std::string_view name = "");
  // The source itself with other operands and another shape: all attributes.
  hlo::Instruction* AddLikeSource(hlo::Shape shape, std::vector<hlo::Instruction*> operands);
  hlo::Instruction* Constant(hlo::PrimitiveType type, double value);
  hlo::Instruction* Zero(hlo::PrimitiveType type);  // of any type
  hlo::Instruction* Element(hlo::Instruction* tuple, int64_t index);
  hlo::Instruction* Reshape(hlo::Instruction* value, std::vector<int64_t> dims);

  // s32[]: this device's shard number along the axes.
  hlo::Instruction* Coordinate(const sharding::Axes& axes);
  // s32[]: the same times `scale`; where this device's shard begins.
  hlo::Instruction* Offset(const sharding::Axes& axes, int64_t scale);

  // Dimension `dim` with `size` elements: cut off at the end, or filled up with zeros.
  hlo::Instruction* Resize(hlo::Instruction* value, int64_t dim, int64_t size);
  // `value` is a shard, along `dim`, of an array of `size` elements split over
  // `axes`: what lies beyond them becomes the scalar `fill`. No op if the shards are even.
  hlo::Instruction* Mask(hlo::Instruction* value, int64_t dim, const sharding::Axes& axes,
                         int64_t size, hlo::Instruction* fill);
  // pred[dims of `shape`]: first <= local index along `dim` + `offset` < limit, where
  // `offset` is an s32[] (null = 0). A bound that is missing is not asked.
  hlo::Instruction* InRange(const hlo::Shape& shape, int64_t dim, hlo::Instruction* offset,
                            std::optional<int64_t> first, std::optional<int64_t> limit);

  hlo::Instruction* AllGather(hlo::Instruction* value, const sharding::Axes& axes, int64_t dim);
  hlo::Instruction* AllReduce(hlo::Instruction* value, const sharding::Axes& axes,
                              hlo::Computation* region);
  hlo::Instruction* ReduceScatter(hlo::Instruction* value, const sharding::Axes& axes, int64_t dim,
                                  hlo::Computation* region);
  // Splits dimension `split` over the group and joins what arrives along
  // `concat`: the sharding moves from `concat` to `split`.
  hlo::Instruction* AllToAll(hlo::Instruction* value, const sharding::Axes& axes, int64_t split,
                             int64_t concat);
  // Member i of the group gets part i along dimension 0 of all members, in their order.
  hlo::Instruction* Exchange(hlo::Instruction* parts, const sharding::Axes& axes);
  hlo::Instruction* CollectivePermute(hlo::Instruction* value,
                                      const std::vector<std::pair<int64_t, int64_t>>& pairs,
                                      const sharding::Axes& axes);

  // A computation (a, b) -> a op b over scalars.
  hlo::Computation* BinaryRegion(hlo::Opcode opcode, hlo::PrimitiveType type);

 private:
  hlo::Instruction* Collective(hlo::Opcode opcode, hlo::Shape shape, hlo::Instruction* value,
                               const sharding::Axes& axes);
  // u32[]: row-major position of this device in the mesh.
  hlo::Instruction* Position();

  hlo::Computation* computation_;
  const sharding::Mesh& mesh_;
  const hlo::Instruction* source_ = nullptr;
  int32_t reshard_site_ = -1;
  hlo::Instruction* position_ = nullptr;
  std::map<sharding::Axes, hlo::Instruction*> coordinates_;
  std::map<std::pair<sharding::Axes, int64_t>, hlo::Instruction*> offsets_;
};

}  // namespace tpusim::spmd

#endif  // TPUSIM_WORKLOADS_SPMD_EMIT_BUILDER_H_
