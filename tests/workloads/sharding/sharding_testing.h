// Meshes, axes and modules by hand, for the tests of shardings.
#ifndef TPUSIM_TESTS_WORKLOADS_SHARDING_SHARDING_TESTING_H_
#define TPUSIM_TESTS_WORKLOADS_SHARDING_SHARDING_TESTING_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "configs/status_macros.h"
#include "tests/workloads/hlo/hlo_test_util.h"
#include "workloads/sharding/propagation/propagate.h"
#include "workloads/sharding/types/axes.h"

namespace tpusim::sharding {

// x of 4, y of 2: partition 2 * x + y.
inline Mesh XY() { return Mesh{{{"x", 4}, {"y", 2}}, {}}; }
inline AxisRef X() { return {0, 1, 4}; }
inline AxisRef Y() { return {1, 1, 2}; }
// The pieces of x: x:(1)2 and x:(2)2.
inline AxisRef XMajor() { return {0, 1, 2}; }
inline AxisRef XMinor() { return {0, 2, 2}; }

inline void SetAttribute(hlo::Instruction* i, const std::string& key, const std::string& value) {
  (*i->mutable_attrs().mutable_frontend_attributes()->mutable_map())[key] = value;
}

// A module over mesh x=4, y=2 whose shardings are given as the inside of
// #sdy.sharding<@mesh, ...>.
class ShardedTestModule : public hlo::TestModule {
 public:
  ShardedTestModule() {
    (*module().mutable_fields().mutable_frontend_attributes()->mutable_map())["xla.sdy.meshes"] =
        "{mesh = #sdy.mesh<[\"x\"=4, \"y\"=2]>}";
  }

  hlo::Instruction* Argument(hlo::Shape shape, const std::string& sharding) {
    hlo::Instruction* p = Param(std::move(shape));
    if (!sharding.empty()) Say(p, sharding);
    return p;
  }
  static void Say(hlo::Instruction* i, const std::string& sharding) {
    SetAttribute(i, "xla.sdy.sharding", "#sdy.sharding<@mesh, " + sharding + ">");
  }
  hlo::Instruction* Marker(const std::string& target, hlo::Shape shape,
                           std::vector<hlo::Instruction*> operands) {
    hlo::Instruction* i = Add(hlo::Opcode::kCustomCall, std::move(shape), std::move(operands));
    i->mutable_attrs().set_custom_call_target(target);
    return i;
  }
  hlo::Instruction* Constrain(hlo::Instruction* value, const std::string& sharding) {
    hlo::Instruction* i = Marker("Sharding", value->shape(), {value});
    Say(i, sharding);
    return i;
  }
  hlo::Instruction* Dot(hlo::Instruction* a, hlo::Instruction* b, std::vector<int64_t> dims) {
    hlo::Instruction* i = Add(hlo::Opcode::kDot, hlo::F32(std::move(dims)), {a, b});
    i->mutable_attrs().mutable_dot_dimension_numbers()->add_lhs_contracting_dimensions(
        a->shape().rank() - 1);
    i->mutable_attrs().mutable_dot_dimension_numbers()->add_rhs_contracting_dimensions(0);
    return i;
  }

  // The sharding of every leaf of a value after propagation, by the value's name.
  std::string Of(const std::string& name) {
    if (!sharded_.ok()) return Message(sharded_.status());
    for (const hlo::Computation* c : sharded_->module->computations()) {
      for (const hlo::Instruction* i : c->instructions()) {
        if (i->name() != name) continue;
        std::string text;
        for (const Sharding& leaf : sharded_->shardings.at(i).leaves) {
          text += (text.empty() ? "" : " ") + ToString(leaf, sharded_->mesh);
        }
        return text;
      }
    }
    return "no " + name;
  }
  std::string Of(const hlo::Instruction* i) { return Of(i->name()); }
  std::string OfRoot() {
    return sharded_.ok() ? Of(sharded_->module->entry()->root()->name())
                         : Message(sharded_.status());
  }
  void Shard(const PropagationOptions& options = {}) {
    sharded_ = ShardModule(module(), 0, options);
    EXPECT_TRUE(sharded_.ok()) << Message(sharded_.status());
  }
  std::string Error() {
    sharded_ = ShardModule(module(), 0);
    return sharded_.ok() ? "ok" : Message(sharded_.status());
  }
  const ShardedModule& sharded() const { return *sharded_; }

 private:
  absl::StatusOr<ShardedModule> sharded_ = absl::UnknownError("not sharded yet");
};

}  // namespace tpusim::sharding

#endif  // TPUSIM_TESTS_WORKLOADS_SHARDING_SHARDING_TESTING_H_
