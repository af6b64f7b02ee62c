#include <fmt/format.h>

#include <algorithm>

#include "workloads/compiler/reasons.h"
#include "workloads/compiler/stages.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"

namespace tpusim::compiler {
namespace {

using hlo::Instruction;
using sharding::Mesh;

class UsedAxes {
 public:
  explicit UsedAxes(const Mesh& mesh) : mesh_(mesh), used_(mesh.axes.size(), false) {
    for (size_t axis = 0; axis < mesh.axes.size(); ++axis) {
      if (mesh.axes[axis].size == 1) used_[axis] = true;
    }
    position_of_.resize(static_cast<size_t>(mesh.size()));
    for (size_t at = 0; at < position_of_.size(); ++at) {
      const int64_t partition =
          mesh.device_ids.empty() ? static_cast<int64_t>(at) : mesh.device_ids[at];
      if (partition >= 0 && partition < mesh.size()) {
        position_of_[static_cast<size_t>(partition)] = static_cast<int64_t>(at);
      }
    }
  }

  bool all() const { return std::ranges::find(used_, false) == used_.end(); }
  bool used(size_t axis) const { return used_[axis]; }

  void Add(const std::vector<sharding::AxisRef>& axes) {
    for (const sharding::AxisRef& ref : axes) used_[static_cast<size_t>(ref.axis)] = true;
  }
  void Add(const sharding::Sharding& sharding) {
    for (const sharding::DimSharding& dim : sharding.dims) Add(dim.axes);
    Add(sharding.unreduced);
  }
  // Adds an exchange between partitions: they use the axes along which they are apart.
  void Add(int64_t a, int64_t b) {
    if (a < 0 || b < 0 || std::max(a, b) >= mesh_.size()) return;
    int64_t at = position_of_[static_cast<size_t>(a)], other = position_of_[static_cast<size_t>(b)];
    for (size_t axis = used_.size(); axis-- > 0;) {
      const int64_t size = mesh_.axes[axis].size;
      if (at % size != other % size) used_[axis] = true;
      at /= size;
      other /= size;
    }
  }

 private:
  const Mesh& mesh_;
  std::vector<bool> used_;
  std::vector<int64_t> position_of_;  // of partitions, in the mesh
};

// Groups of a collective are alike: the first says along which axes they go.
void AddExchange(const Instruction& i, int64_t partitions, UsedAxes& axes) {
  if (i.opcode() == hlo::Opcode::kCollectivePermute) {
    for (const auto& [source, target] : hlo::SourceTargetPairs(i)) axes.Add(source, target);
    return;
  }
  const auto groups = hlo::ReplicaGroups(i, partitions);
  if (!groups.ok() || groups->empty()) return;
  for (const int64_t member : groups->front()) axes.Add(groups->front().front(), member);
}

}  // namespace

std::vector<sharding::MeshAxis> UnusedAxes(const sharding::ShardedModule& sharded) {
  const Mesh& mesh = sharded.mesh;
  if (mesh.axes.empty() || mesh.size() != sharded.num_partitions) return {};
  UsedAxes axes(mesh);
  for (const hlo::Computation* computation : sharded.module->computations()) {
    for (const Instruction* i : computation->instructions()) {
      if (axes.all()) return {};
      if (i->opcode() == hlo::Opcode::kPartitionId) return {};
      if (hlo::IsCollective(i->opcode())) AddExchange(*i, sharded.num_partitions, axes);
      if (sharded.shardings.contains(i)) {
        for (const sharding::Sharding& leaf : sharded.shardings.at(i).leaves) axes.Add(leaf);
      }
      const auto region = sharded.manual_regions.find(i);
      if (region == sharded.manual_regions.end()) continue;
      for (const sharding::Sharding& operand : region->second.operands) axes.Add(operand);
      for (const sharding::Sharding& result : region->second.results) axes.Add(result);
    }
  }
  std::vector<sharding::MeshAxis> unused;
  for (size_t axis = 0; axis < mesh.axes.size(); ++axis) {
    if (!axes.used(axis)) unused.push_back(mesh.axes[axis]);
  }
  return unused;
}

std::vector<Record> UnusedParts(const sharding::ShardedModule& sharded,
                                const configs::Config& config) {
  std::vector<Record> unused;
  const int64_t partitions = sharded.num_partitions, devices = config.devices();
  if (partitions < devices) {
    Records(&unused).Add(
        reasons::kDevicesIdle, config.name,
        {{"idle", devices - partitions},
         {"devices", devices},
         {"partitions", partitions == 1
                            ? "one partition; no argument is sharded over several devices"
                            : fmt::format("{} partitions", partitions)}});
  }
  for (const sharding::MeshAxis& axis : UnusedAxes(sharded)) {
    Records(&unused).Add(reasons::kAxisUnused, axis.name, {{"devices", axis.size}});
  }
  return unused;
}

}  // namespace tpusim::compiler
