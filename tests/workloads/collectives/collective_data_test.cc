// Every algorithm delivers what it should: the logical steps are executed for
// every candidate that a group has, not only for the one that is chosen, and the
// bodies of the chosen one transfer exactly the bytes of its steps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>

#include "configs/config.h"
#include "models/isa/verify.h"
#include "tests/workloads/collectives/collective_interpreter.h"
#include "tests/workloads/collectives/requests.h"
#include "workloads/collectives/choice.h"

namespace tpusim::collectives {
namespace {

configs::Config Slice(std::array<int64_t, 3> shape, std::array<bool, 3> wrap) {
  configs::Config config = *configs::LoadConfig("v5e-1x1", {});
  config.name = "test slice";
  config.topology = configs::Topology(shape, wrap, 1);
  return config;
}

// Checks all candidates for all kinds and two sizes: 1 KiB allows the single
// phase of an all-reduce, 1 MB + 4 divides by nothing.
void CheckAll(const configs::Config& config, const std::vector<std::vector<int64_t>>& groups) {
  for (const CollectiveKind kind : kGroupKinds) {
    for (const int64_t bytes : {int64_t{1024}, int64_t{1000004}}) {
      const CollectiveRequest request = Request(kind, groups, bytes);
      int64_t expected_bytes = 0;
      for (const GroupForm& form : FormsOf(config.topology, groups)) {
        std::vector<Algorithm> candidates = CandidatesFor(config, request, form);
        ASSERT_FALSE(candidates.empty());
        for (Algorithm& sum : AllReducesFor(config, request, form)) {
          candidates.push_back(std::move(sum));
        }
        for (const Algorithm& candidate : candidates) {
          EXPECT_EQ(FollowData(candidate.plan).problem, "")
              << candidate.algorithm << ", kind " << static_cast<int>(kind) << ", " << bytes;
        }
        expected_bytes += FollowData(Fastest(config, request, form).plan).bytes_sent *
                          static_cast<int64_t>(form.groups.size());
      }
      isa::PodProgram program;
      const auto lowered = LowerCollective(config, request, program);
      ASSERT_TRUE(lowered.ok()) << lowered.status();
      isa::PodProgram whole = program;
      RunAlone(*lowered, whole);
      const absl::Status valid = isa::Verify(whole, config.topology);
      EXPECT_TRUE(valid.ok()) << valid;
      // Three rounds: flags carry nothing over.
      const BodyRun run = RunBodies(config, program, *lowered, 3);
      EXPECT_EQ(run.problem, "") << lowered->info.algorithm;
      EXPECT_EQ(run.bytes_sent, 3 * expected_bytes) << lowered->info.algorithm;
    }
  }
}

TEST(CollectiveDataTest, RingsOfEveryLength) {
  for (int64_t n = 2; n <= 9; ++n) {
    SCOPED_TRACE(n);
    const configs::Config config = Slice({n, 1, 1}, {true, false, false});
    CheckAll(config, GroupsAlong(config.topology, {0}));
  }
}

TEST(CollectiveDataTest, LinesOfEveryLength) {
  for (int64_t n = 2; n <= 7; ++n) {
    SCOPED_TRACE(n);
    const configs::Config config = Slice({1, n, 2}, {false, false, false});
    CheckAll(config, GroupsAlong(config.topology, {1}));
  }
}

TEST(CollectiveDataTest, PlanesOfRingsAndLines) {
  for (const auto& wrap : {std::array{true, true, false}, std::array{true, false, false},
                           std::array{false, false, false}}) {
    for (const auto& shape : {std::array<int64_t, 3>{4, 4, 1}, std::array<int64_t, 3>{4, 2, 1},
                              std::array<int64_t, 3>{3, 4, 1}, std::array<int64_t, 3>{3, 3, 1}}) {
      SCOPED_TRACE(testing::Message()
                   << shape[0] << "x" << shape[1] << " wraps " << wrap[0] << wrap[1]);
      const configs::Config config = Slice(shape, wrap);
      CheckAll(config, GroupsAlong(config.topology, {0, 1}));
    }
  }
}

TEST(CollectiveDataTest, CubesAndPlanesWithinThem) {
  for (const bool wraps : {false, true}) {
    const configs::Config cube = Slice({2, 2, 2}, {wraps, wraps, wraps});
    CheckAll(cube, GroupsAlong(cube.topology, {0, 1, 2}));
    CheckAll(cube, GroupsAlong(cube.topology, {0, 2}));
    const configs::Config box = Slice({3, 2, 4}, {wraps, false, wraps});
    CheckAll(box, GroupsAlong(box.topology, {0, 1, 2}));
  }
}

TEST(CollectiveDataTest, EveryOtherChipOfARingAndOfALine) {
  const configs::Config ring = Slice({8, 1, 1}, {true, false, false});
  CheckAll(ring, {{0, 2, 4, 6}, {1, 3, 5, 7}});
  const configs::Config line = Slice({6, 1, 1}, {false, false, false});
  CheckAll(line, {{0, 2, 4}, {1, 3, 5}});
}

TEST(CollectiveDataTest, PartOfARingAcrossItsSeam) {
  const configs::Config config = Slice({8, 1, 1}, {true, false, false});
  CheckAll(config, {{7, 0, 1}, {3, 2, 4}});
}

TEST(CollectiveDataTest, GroupsThatAreNoBox) {
  const configs::Config config = Slice({4, 4, 1}, {false, false, false});
  CheckAll(config, {{0, 5, 10, 15}, {1, 4, 11, 14}});
  CheckAll(config, {{0, 1, 3, 7, 12}});
  CheckAll(config, {{0, 5}});
}

TEST(CollectiveDataTest, GroupsOfDifferentForms) {
  // 2x2 box, line of 4 and a scattered four side by side.
  const configs::Config config = Slice({4, 4, 1}, {false, false, false});
  CheckAll(config, {{0, 1, 4, 5}, {12, 13, 14, 15}, {2, 7, 8, 10}});
}

// An axis that closes with a shift is a ring for data that the shift leaves alone.
TEST(CollectiveDataTest, TwistedTori) {
  for (const auto& shape : {std::array<int64_t, 3>{2, 2, 4}, std::array<int64_t, 3>{2, 4, 4}}) {
    configs::Config config = Slice(shape, {true, true, true});
    config.topology = configs::Topology(shape, {true, true, true}, 1, configs::TwistOf(shape));
    ASSERT_TRUE(config.topology.twisted());
    for (const std::vector<int>& axes :
         {std::vector{0, 1, 2}, std::vector{0, 2}, std::vector{0, 1}, std::vector{0}}) {
      SCOPED_TRACE(testing::PrintToString(axes));
      CheckAll(config, GroupsAlong(config.topology, axes));
    }
  }
}

TEST(CollectiveDataTest, ChipsOfTwoDevices) {
  configs::Config config = *configs::LoadConfig("v7x-1x1x1", {});
  for (const bool wraps : {false, true}) {
    config.topology = configs::Topology({4, 2, 1}, {wraps, false, false}, 2);
    for (const std::vector<int>& axes :
         {std::vector{0}, {1}, {kCoreAxis}, {0, 1}, {0, kCoreAxis}, {0, 1, kCoreAxis}}) {
      SCOPED_TRACE(testing::PrintToString(axes));
      CheckAll(config, GroupsAlong(config.topology, axes));
    }
  }
  config.topology = configs::Topology({2, 2, 2}, {false, false, false}, 2);
  CheckAll(config, GroupsAlong(config.topology, {0, 1, 2, kCoreAxis}));
  // No boxes: the two devices of a chip and one of its neighbour; one of each
  // chip, but not the same.
  CheckAll(config, {{0, 1, 2}, {4, 5, 6}});
  CheckAll(config, {{0, 3, 4, 7}, {1, 2, 5, 6}});
}

TEST(CollectiveDataTest, SeveralSlices) {
  configs::Config config = *configs::LoadConfig("v5e-1x1", {});
  for (const int64_t slices : {2, 3, 4}) {
    for (const bool wraps : {false, true}) {
      config.topology = configs::Topology({4, 2, 1}, {wraps, false, false}, 1, {}, slices);
      for (const std::vector<int>& axes :
           {std::vector{kSliceAxis}, {0, kSliceAxis}, {1, kSliceAxis}, {0, 1, kSliceAxis}}) {
        SCOPED_TRACE(testing::PrintToString(axes));
        CheckAll(config, GroupsAlong(config.topology, axes));
      }
    }
  }
  // Two of three slices, so that there is a first and a last one; and no boxes.
  config.topology = configs::Topology({4, 1, 1}, {false, false, false}, 1, {}, 3);
  CheckAll(config, {{0, 4}, {1, 5}, {2, 6}});
  CheckAll(config, {{0, 1, 8, 9}, {2, 3, 10, 11}});
  CheckAll(config, {{0, 5, 10}});
  // Chips of two devices.
  config = *configs::LoadConfig("v7x-1x1x1", {});
  config.topology = configs::Topology({2, 2, 1}, {false, false, false}, 2, {}, 2);
  CheckAll(config, GroupsAlong(config.topology, {0, kCoreAxis, kSliceAxis}));
  CheckAll(config, GroupsAlong(config.topology, {kCoreAxis, kSliceAxis}));
}

// Returns the bytes that all devices together send over single hops or direct routes.
int64_t SentBytes(const configs::Config& config, const CollectiveRequest& request) {
  isa::PodProgram program;
  const auto lowered = LowerCollective(config, request, program);
  EXPECT_TRUE(lowered.ok()) << lowered.status();
  const BodyRun run = RunBodies(config, program, *lowered, 2);
  EXPECT_EQ(run.problem, "") << lowered->info.algorithm;
  return run.bytes_sent / 2;
}

CollectiveRequest Uneven(std::vector<std::vector<int64_t>> groups, std::vector<int64_t> parts) {
  CollectiveRequest request = Request(CollectiveKind::kAllToAll, std::move(groups), 0);
  for (const int64_t part : parts) {
    request.parts.push_back(Bytes(part));
    request.operand_bytes += Bytes(part);
  }
  return request;
}

TEST(CollectiveDataTest, PartsOfAnExchangeThatDiffer) {
  const configs::Config line = Slice({3, 1, 1}, {false, false, false});
  // The first gets 100 bytes from each of two, the second nothing, the third 20.
  EXPECT_EQ(SentBytes(line, Uneven({{0, 1, 2}}, {100, 0, 20})), 2 * 100 + 2 * 20);
  EXPECT_EQ(SentBytes(line, Uneven({{1, 0, 2}}, {100, 0, 20})), 2 * 100 + 2 * 20);
  // Only to one: nothing else is sent, and nobody waits for it.
  EXPECT_EQ(SentBytes(line, Uneven({{0, 1, 2}}, {0, 0, 8})), 2 * 8);
}

TEST(CollectiveDataTest, EqualPartsAreAnOrdinaryExchange) {
  const configs::Config ring = Slice({6, 1, 1}, {true, false, false});
  const configs::Config plane = Slice({4, 2, 1}, {false, false, false});
  const configs::Config torus = Slice({4, 4, 1}, {true, true, false});
  const auto check = [](const configs::Config& config,
                        const std::vector<std::vector<int64_t>>& groups) {
    const auto n = static_cast<int64_t>(groups[0].size());
    const CollectiveRequest equal = Request(CollectiveKind::kAllToAll, groups, 4096 * n);
    EXPECT_EQ(SentBytes(config, Uneven(groups, std::vector<int64_t>(n, 4096))),
              SentBytes(config, equal));
  };
  check(ring, GroupsAlong(ring.topology, {0}));
  check(plane, GroupsAlong(plane.topology, {0, 1}));
  check(torus, GroupsAlong(torus.topology, {0, 1}));
  check(torus, {{0, 5, 10, 15}, {1, 4, 11, 14}});
}

TEST(CollectiveDataTest, TheBusiestReceiverBoundsAnExchange) {
  const configs::Config line = Slice({3, 1, 1}, {false, false, false});
  isa::PodProgram program;
  const auto lowered = LowerCollective(line, Uneven({{0, 1, 2}}, {90'000, 0, 0}), program);
  ASSERT_TRUE(lowered.ok());
  EXPECT_EQ(lowered->info.bytes, Bytes(90'000));
  // Twice 90,000 bytes come in over the one link of the first, 45 GB/s: 4 us.
  EXPECT_EQ(line.chip.ici.link_bytes_per_second.value(), 45e9);
  EXPECT_EQ(lowered->info.bound, Picoseconds(4'000'000));
}

}  // namespace
}  // namespace tpusim::collectives
