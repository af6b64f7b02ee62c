#include "models/events/run_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "models/events/sim_time.h"

namespace tpusim::events {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

// Notes who runs in which delta cycle.
struct RunLog {
  RunQueue queue{"queue"};
  std::vector<std::pair<int, uint64_t>> ran;
};
struct Ran : Runnable {
  Ran(RunLog& log, int name) : log(log), name(name) {}
  void Run() override {
    log.ran.emplace_back(name, sc_core::sc_delta_count());
    if (next != nullptr) log.queue.Push(std::exchange(next, nullptr));
  }
  RunLog& log;
  const int name;
  Runnable* next = nullptr;
};

TEST(RunQueue, RunsInTheNextCycleAndTheLastFirst) {
  RunLog log;
  Ran a(log, 1), b(log, 2), c(log, 3);
  a.next = &a;  // once more
  sc_core::sc_start(sc_core::SC_ZERO_TIME);
  for (Ran* entry : {&a, &b, &c}) log.queue.Push(entry);
  EXPECT_TRUE(log.ran.empty());
  EXPECT_TRUE(sc_core::sc_pending_activity_at_current_time());
  const uint64_t now = sc_core::sc_delta_count();
  sc_core::sc_start(ScTime(Picoseconds(1)));
  EXPECT_THAT(log.ran, ElementsAre(Pair(3, now), Pair(2, now), Pair(1, now), Pair(1, now + 1)));
}

TEST(RunQueueDeathTest, HasNoStateInTheMidstOfAnInstant) {
  RunLog log;
  Ran a(log, 1);
  auto visitor = steady::StateVisitor::Read(Picoseconds(0));
  log.queue.Visit(visitor);
  log.queue.Push(&a);
  EXPECT_DEATH(log.queue.Visit(visitor), "has yet to run");
}

}  // namespace
}  // namespace tpusim::events
