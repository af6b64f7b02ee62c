#include "models/ici/joint_arrivals.h"

#include <gtest/gtest.h>

namespace tpusim::ici {
namespace {

constexpr int32_t kRoute = 2, kFlag = 5;

// The example of the header: two transfers of A, then one of B.
TEST(JointArrivals, TheLastOfAllSendersCounts) {
  JointArrivals joint;
  EXPECT_FALSE(joint.Add(kRoute, kFlag, 0, 2));
  EXPECT_FALSE(joint.Add(kRoute, kFlag, 0, 2));
  EXPECT_TRUE(joint.Add(kRoute, kFlag, 1, 2));
  EXPECT_TRUE(joint.Add(kRoute, kFlag, 1, 2));
  EXPECT_FALSE(joint.Add(kRoute, kFlag, 1, 2));
}

TEST(JointArrivals, RoutesAndFlagsAreApart) {
  JointArrivals joint;
  EXPECT_FALSE(joint.Add(kRoute, kFlag, 0, 2));
  EXPECT_FALSE(joint.Add(kRoute + 1, kFlag, 1, 2));
  EXPECT_FALSE(joint.Add(kRoute, kFlag + 1, 1, 2));
  EXPECT_TRUE(joint.Add(kRoute, kFlag, 1, 2));
  EXPECT_TRUE(joint.Add(kRoute, kFlag, 0, /*senders=*/1));
}

// After as many transfers of each class nothing is left that tells two moments apart.
TEST(JointArrivals, StateIsThatOfWhatIsStillToCome) {
  const auto state = [](JointArrivals& joint) {
    auto reader = steady::StateVisitor::Read(Picoseconds(0));
    joint.Visit(reader);
    const steady::Snapshot snapshot = reader.TakeSnapshot();
    return std::vector<int64_t>(snapshot.values.begin(),
                                snapshot.values.begin() + static_cast<int64_t>(snapshot.count));
  };
  JointArrivals joint;
  const std::vector<int64_t> empty = state(joint);
  joint.Add(kRoute, kFlag, 1, 2);
  const std::vector<int64_t> one = state(joint);
  EXPECT_NE(one, empty);
  joint.Add(kRoute, kFlag, 0, 2);
  EXPECT_EQ(state(joint), empty);
  joint.Add(kRoute, kFlag, 1, 2);
  EXPECT_EQ(state(joint), one);
}

}  // namespace
}  // namespace tpusim::ici
