// A program to shard, for the tests of the search.
#ifndef TPUSIM_TESTS_WORKLOADS_SEARCH_SEARCH_TESTING_H_
#define TPUSIM_TESTS_WORKLOADS_SEARCH_SEARCH_TESTING_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "configs/config.h"
#include "configs/status_macros.h"
#include "tests/workloads/sharding/sharding_testing.h"
#include "workloads/search/program.h"
#include "workloads/search/space.h"

namespace tpusim::search {

// y[b, d] = x[b, d] + (x[b, d] up[d, f]) down[f, d] with b = 64, d = 256, f = 512: three decisions,
// of f, of d and of b in the order of their bytes. The products take as long, each.
// `constrainable`: values that may get constraints; the first product is called "dot". `reads`:
// with the time of reading weights, which is longer than that of the products.
inline Program TwoProducts(const std::string& constraint = "",
                           std::vector<std::string> constrainable = {}, bool reads = false) {
  sharding::ShardedTestModule m;
  const auto argument = [&](const std::string& name, std::vector<int64_t> dims) {
    hlo::Instruction* made = m.Argument(hlo::F32(std::move(dims)), "");
    made->mutable_attrs().mutable_metadata()->set_op_name(name);
    return made;
  };
  hlo::Instruction* x = argument("x", {64, 256});
  hlo::Instruction* up = argument("params['up']", {256, 512});
  hlo::Instruction* down = argument("params['down']", {512, 256});
  hlo::Instruction* h = m.Dot(x, up, {64, 512});
  if (!constraint.empty()) h = m.Constrain(h, constraint);
  m.Add(hlo::Opcode::kAdd, hlo::F32({64, 256}), {x, m.Dot(h, down, {64, 256})});
  VariantOptions options;
  options.constrainable = std::move(constrainable);
  hlo::ImportedWorkload imported;
  imported.module = m.module().Clone();
  absl::StatusOr<Program> program =
      ProgramOf(std::move(imported), configs::LoadConfig("v5e-4x2", {}).value(), {}, options);
  EXPECT_TRUE(program.ok()) << program.status();
  if (!reads) program->variants[0].read_seconds.clear();
  return *std::move(program);
}

// Options for 8 devices in axes x and y.
inline SpaceOptions OverTwoAxes() {
  SpaceOptions options;
  options.devices = 8;
  options.axes = {"x", "y"};
  return options;
}

// The number of the decision of the space that has this dimension of an argument.
inline size_t DecisionOf(const Space& space, const std::string& dimension) {
  for (size_t d = 0; d < space.decisions(); ++d) {
    const std::vector<std::string>& arguments = space.Decision(d).arguments;
    if (std::ranges::find(arguments, dimension) != arguments.end()) return d;
  }
  ADD_FAILURE() << "no decision has " << dimension;
  return 0;
}

}  // namespace tpusim::search

#endif  // TPUSIM_TESTS_WORKLOADS_SEARCH_SEARCH_TESTING_H_
