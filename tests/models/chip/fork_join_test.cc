#include "models/chip/fork_join.h"

#include <vector>

#include "tests/models/bench.h"
#include "tests/models/stubs.h"

namespace tpusim::chip {
namespace {

using ::tpusim::testing::StubStream;
using Joined = ForkJoinInterface::Joined;

constexpr isa::StreamId kCopies{isa::StreamKind::kCopy, 1};
constexpr isa::StreamId kHost{isa::StreamKind::kHost, 0};

struct ForkJoinBench : testing::Bench {
  explicit ForkJoinBench(sc_core::sc_module_name name = "bench") : Bench(name) {
    main.as.id = {isa::StreamKind::kTensorCore, 0};
    copies.as.id = kCopies;
    fork_join.streams(main);
    fork_join.streams(copies);
  }
  StubStream main, copies;
  ForkJoin fork_join{"fork_join"};
  const isa::Body body;
};

TEST(ForkJoin, ABodyGoesToItsStream) {
  ForkJoinBench bench;
  bench.Elaborate();
  EXPECT_TRUE(bench.fork_join.Fork(kCopies, bench.body, 5, {}));
  EXPECT_EQ(bench.copies.queued, std::vector<int32_t>{5});
  EXPECT_TRUE(bench.main.queued.empty());
}

TEST(ForkJoin, AJoinBehindTheEndFreesTheToken) {
  ForkJoinBench bench;
  bench.Elaborate();
  ASSERT_TRUE(bench.fork_join.Fork(kCopies, bench.body, 5, {}));
  bench.fork_join.Finish(5);
  EXPECT_EQ(bench.fork_join.Join(5, &bench.main), Joined::kYes);
  EXPECT_EQ(bench.main.woken, 0);
  EXPECT_EQ(bench.fork_join.Join(5, &bench.main), Joined::kNeverStarted);
  EXPECT_TRUE(bench.fork_join.Fork(kCopies, bench.body, 5, {}));
}

TEST(ForkJoin, WhoHasTheBodyHearsThatAnotherWaitsForIt) {
  ForkJoinBench bench;
  bench.Elaborate();
  ASSERT_TRUE(bench.fork_join.Fork(kCopies, bench.body, 5, {}));
  EXPECT_TRUE(bench.copies.awaited.empty());
  EXPECT_EQ(bench.fork_join.Join(5, &bench.main), Joined::kWait);
  EXPECT_EQ(bench.copies.awaited, std::vector<int32_t>{5});
}

TEST(ForkJoin, AJoinBeforeTheEndIsWokenByIt) {
  ForkJoinBench bench;
  bench.Elaborate();
  ASSERT_TRUE(bench.fork_join.Fork(kCopies, bench.body, 5, {}));
  ASSERT_TRUE(bench.fork_join.Fork(kCopies, bench.body, 3, {}));
  EXPECT_EQ(bench.fork_join.Join(5, &bench.main), Joined::kWait);
  bench.fork_join.Finish(3);
  EXPECT_EQ(bench.main.woken, 0);
  bench.fork_join.Finish(5);
  EXPECT_EQ(bench.main.woken, 1);
  EXPECT_EQ(bench.fork_join.Join(5, &bench.main), Joined::kNeverStarted);
}

TEST(ForkJoin, ATokenIsStartedOnceUntilItsJoin) {
  ForkJoinBench bench;
  bench.Elaborate();
  ASSERT_TRUE(bench.fork_join.Fork(kCopies, bench.body, 5, {}));
  EXPECT_FALSE(bench.fork_join.Fork(kCopies, bench.body, 5, {}));
  bench.fork_join.Finish(5);
  EXPECT_FALSE(bench.fork_join.Fork(kCopies, bench.body, 5, {}));
  EXPECT_EQ(bench.copies.queued.size(), 1u);
  EXPECT_EQ(bench.fork_join.Join(4, &bench.main), Joined::kNeverStarted);
}

TEST(ForkJoin, BrokenProgramsStopTheMachine) {
  ForkJoinBench bench;
  bench.Elaborate();
  EXPECT_DEATH(bench.fork_join.Fork(kHost, bench.body, 5, {}), "a stream that does not exist");
  EXPECT_DEATH(bench.fork_join.Finish(5), "a body ends that was never started");
  ASSERT_TRUE(bench.fork_join.Fork(kCopies, bench.body, 5, {}));
  ASSERT_EQ(bench.fork_join.Join(5, &bench.main), Joined::kWait);
  EXPECT_DEATH(bench.fork_join.Join(5, &bench.copies), "two streams wait for one token");
}

}  // namespace
}  // namespace tpusim::chip
