// Meshes, shardings and hand-made sharded modules for the tests of the partitioner.
#ifndef TPUSIM_TESTS_WORKLOADS_SPMD_SPMD_TEST_UTIL_H_
#define TPUSIM_TESTS_WORKLOADS_SPMD_SPMD_TEST_UTIL_H_

#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "workloads/hlo/ir/ir.h"
#include "workloads/sharding/propagation/propagate.h"
#include "workloads/sharding/types/axes.h"
#include "workloads/sharding/types/sharding.h"
#include "workloads/spmd/reshard_plan.h"

namespace tpusim::spmd {

// 5.4 us to start and 1 us per hop, at 45 GB/s.
inline constexpr ReshardLatency kV5eLatency{Bytes(243'000), Bytes(45'000)};

inline sharding::Mesh MeshOf(std::initializer_list<int64_t> sizes,
                             std::vector<int64_t> device_ids = {}) {
  sharding::Mesh mesh;
  char name = 'X';
  for (int64_t size : sizes) mesh.axes.push_back({std::string(1, name++), size});
  mesh.device_ids = std::move(device_ids);
  return mesh;
}

// One list of axes per dimension, partial sums over `unreduced`.
inline sharding::Sharding Split(std::vector<sharding::Axes> dims, sharding::Axes unreduced = {}) {
  sharding::Sharding result = sharding::Replicated(static_cast<int64_t>(dims.size()));
  for (size_t d = 0; d < dims.size(); ++d) result.dims[d].axes = std::move(dims[d]);
  result.unreduced = std::move(unreduced);
  return result;
}

inline hlo::Shape F32(std::vector<int64_t> dims) {
  return hlo::MakeShape(hlo::PrimitiveType::kF32, std::move(dims));
}

// A module whose shardings are given, as propagation would.
class SmallSharded {
 public:
  explicit SmallSharded(const sharding::Mesh& mesh) {
    sharded_.module = std::make_unique<hlo::Module>("test");
    sharded_.mesh = mesh;
    sharded_.num_partitions = mesh.size();
    entry_ = sharded_.module->AddComputation("main");
    sharded_.module->set_entry(entry_);
  }

  hlo::Instruction* Parameter(hlo::Shape shape, sharding::Sharding sharding) {
    return Sharded(entry_->AddParameter(parameters_++, std::move(shape), "p"), std::move(sharding));
  }
  hlo::Instruction* Add(hlo::Opcode opcode, hlo::Shape shape,
                        std::vector<hlo::Instruction*> operands, sharding::Sharding sharding) {
    return Sharded(entry_->Add(opcode, std::move(shape), std::move(operands)), std::move(sharding));
  }
  // A sharding constraint.
  hlo::Instruction* Constraint(hlo::Instruction* value, sharding::Sharding sharding) {
    hlo::Instruction* copy = Add(hlo::Opcode::kCopy, value->shape(), {value}, std::move(sharding));
    sharded_.constraints.insert(copy);
    return copy;
  }
  const sharding::ShardedModule& Return(hlo::Instruction* value) {
    entry_->set_root(value);
    return sharded_;
  }

 private:
  hlo::Instruction* Sharded(hlo::Instruction* instruction, sharding::Sharding sharding) {
    sharded_.shardings[instruction].leaves = {std::move(sharding)};
    return instruction;
  }

  sharding::ShardedModule sharded_;
  hlo::Computation* entry_ = nullptr;
  int64_t parameters_ = 0;
};

}  // namespace tpusim::spmd

#endif  // TPUSIM_TESTS_WORKLOADS_SPMD_SPMD_TEST_UTIL_H_
