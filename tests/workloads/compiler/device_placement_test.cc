#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "configs/config.h"
#include "configs/status_macros.h"
#include "workloads/compiler/stages.h"

namespace tpusim::compiler {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// A program over 2x32 devices of v7x, which the version of JAX exported.
DevicePlacement PlacementOf(const std::string& jax) {
  tpusim::Workload workload;
  workload.set_jax_version(jax);
  sharding::Mesh mesh;
  mesh.axes = {{"data", 2}, {"fsdp", 32}};
  const configs::Config config = configs::LoadConfig("v7x-2x4x4", {}).value();
  auto placement = PlacePartitions(workload, mesh, 64, config, /*option=*/"");
  EXPECT_TRUE(placement.ok()) << Message(placement.status());
  return *std::move(placement);
}

TEST(DevicePlacementTest, TheJaxThatExportsLaysOutTheMesh) {
  const DevicePlacement older = PlacementOf("0.10.2");
  EXPECT_THAT(older.rule, Not(HasSubstr("devices of a chip first")));
  const DevicePlacement newer = PlacementOf("0.12.0.1");
  EXPECT_THAT(newer.rule, HasSubstr("devices of a chip first"));
  EXPECT_NE(older.device_of_partition, newer.device_of_partition);
  // Partitions 0 and 1 are the devices of one chip; the other half of `data` is at the other x.
  EXPECT_EQ(newer.device_of_partition[0], 0);
  EXPECT_EQ(newer.device_of_partition[1], 1);
  EXPECT_EQ(newer.device_of_partition[32], 2);
  // Written by no JAX that it names, it is laid out as by the newest.
  EXPECT_EQ(PlacementOf("").device_of_partition, newer.device_of_partition);
}

}  // namespace
}  // namespace tpusim::compiler
