// Pods of the chip of tests (test_chip.h), and programs for all of their devices.
#ifndef TPUSIM_TESTS_SIM_POD_TESTING_H_
#define TPUSIM_TESTS_SIM_POD_TESTING_H_

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "configs/config.h"
#include "configs/status_macros.h"
#include "models/isa/program.h"
#include "sim/simulate.h"
#include "tests/models/test_chip.h"

namespace tpusim::testing {

inline configs::Config TestConfig(std::array<int64_t, 3> shape = {1, 1, 1},
                                  std::array<bool, 3> wrap = {false, false, false}) {
  configs::Config config;
  config.name = "test";
  config.chip = TestChip();
  config.topology = configs::Topology(shape, wrap, 1);
  return config;
}

// Returns the slice with chips of several devices.
inline configs::Config WithDevicesPerChip(configs::Config config, int64_t devices) {
  const configs::Topology& chips = config.topology;
  config.chip.devices = config.chip.tensor_cores = devices;
  config.topology =
      configs::Topology(chips.shape(), {chips.wraps(0), chips.wraps(1), chips.wraps(2)}, devices);
  return config;
}

// So many slices like this one.
inline configs::Config WithSlices(configs::Config config, int64_t slices) {
  const configs::Topology& slice = config.topology;
  config.topology =
      configs::Topology(slice.shape(), {slice.wraps(0), slice.wraps(1), slice.wraps(2)},
                        slice.devices_per_chip(), {}, slices);
  return config;
}

// From every device in `pairs` to its peer, the way the topology says.
inline isa::Route RouteBetween(const configs::Config& config,
                               const std::vector<std::pair<int32_t, int32_t>>& pairs) {
  isa::Route route;
  route.name = "test route";
  route.from.resize(static_cast<size_t>(config.devices()));
  for (const auto& [from, to] : pairs) {
    route.from[from].peer = to;
    const int64_t per_chip = config.topology.devices_per_chip();
    const auto links = config.topology.Route(from / per_chip, to / per_chip);
    route.from[from].links.assign(links.begin(), links.end());
    route.from[from].dcn =
        config.topology.SliceOf(from / per_chip) != config.topology.SliceOf(to / per_chip);
  }
  return route;
}

// A program in which device i runs bodies[i] (null: nothing).
inline isa::PodProgram MakeProgram(std::vector<isa::SharedBody> bodies) {
  isa::PodProgram program;
  for (isa::SharedBody& body : bodies) {
    if (body == nullptr) body = Share();
    program.program_of_device.push_back(static_cast<int32_t>(program.programs.size()));
    program.programs.push_back(std::move(body));
  }
  program.flags = 8;
  program.tokens = 8;
  return program;
}

inline int32_t AddOp(isa::PodProgram& program, const std::string& name, bool collective = false) {
  isa::OpInfo op;
  op.name = name;
  if (collective) {
    op.collective = static_cast<int32_t>(program.info.collectives.size());
    program.info.collectives.emplace_back();
  }
  program.info.ops.push_back(op);
  return static_cast<int32_t>(program.info.ops.size() - 1);
}

inline sim::Timeline MustSimulate(const configs::Config& config, const isa::PodProgram& program,
                                  std::vector<int32_t> record = {}) {
  sim::SimulationOptions options;
  options.record_devices = std::move(record);
  absl::StatusOr<sim::Timeline> timeline = sim::Simulate(config, program, options);
  EXPECT_TRUE(timeline.ok()) << Message(timeline.status());
  return timeline.ok() ? *std::move(timeline) : sim::Timeline{};
}

inline std::string SimulationError(const configs::Config& config, const isa::PodProgram& program) {
  const absl::StatusOr<sim::Timeline> timeline = sim::Simulate(config, program, {});
  EXPECT_FALSE(timeline.ok());
  return timeline.ok() ? "" : Message(timeline.status());
}

}  // namespace tpusim::testing

#endif  // TPUSIM_TESTS_SIM_POD_TESTING_H_
