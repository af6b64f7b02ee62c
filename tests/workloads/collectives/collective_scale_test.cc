// The work of deciding on a collective, by the number of devices that take part.
#include <gtest/gtest.h>

#include <ctime>

#include "configs/config.h"
#include "tests/workloads/collectives/collective_interpreter.h"
#include "workloads/collectives/box.h"

namespace tpusim::collectives {
namespace {

CollectiveRequest AllReduceOfAll(const configs::Config& config) {
  CollectiveRequest request;
  request.kind = CollectiveKind::kAllReduce;
  request.groups = GroupsAlong(config.topology, {0, 1, kSliceAxis});
  request.operand_bytes = Bytes(256 * kMiB);
  return request;
}

double CpuSecondsToDecide(const std::string& slices) {
  const configs::Config config = *configs::LoadConfig(slices, {});
  const CollectiveRequest request = AllReduceOfAll(config);
  const std::clock_t before = std::clock();
  EXPECT_TRUE(DecideCollective(config, request).ok());
  return static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
}

// One group of 1,024 and of 16,384 devices: 16 times as many, and 256 times as many pairs of
// slices in which two of them exchange. The bound leaves room for a busy machine.
TEST(CollectiveScaleTest, SlicesCostNoMoreThanTheirDevices) {
  const double few = CpuSecondsToDecide("4x(v5e-16x16)");
  const double many = CpuSecondsToDecide("64x(v5e-16x16)");
  EXPECT_LT(many, 64 * std::max(few, 1e-3));
}

// The chips of a place share the rate of their card however many slices there are: of 256 MiB each
// of 4 slices sends 3 quarters at 3.125e9 B/s, twice: 5.4 + 2 * (12 + 3 * 2^26 / 3.125e9) = 5.4 + 2
// * (12 + 64424.51) us.
TEST(CollectiveScaleTest, ADeviceSendsToAllOtherSlicesAtTheRateOfItsCard) {
  const configs::Config config = *configs::LoadConfig("4x(v5e-16x16)", {"host.dcn_efficiency=1"});
  CollectiveRequest request;
  request.kind = CollectiveKind::kAllReduce;
  request.groups = GroupsAlong(config.topology, {kSliceAxis});
  request.operand_bytes = Bytes(256 * kMiB);
  EXPECT_NEAR(ToMicroseconds(EstimateCollective(config, request)->expected),
              5.4 + 2 * (12 + 64424.51), 0.05);
}

}  // namespace
}  // namespace tpusim::collectives
