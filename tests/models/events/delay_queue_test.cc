#include "models/events/delay_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "models/events/sim_time.h"

namespace tpusim::events {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

// Notes what ends when; tag 7 pushes two more.
struct Log : DelayListener {
  DelayQueue queue{"queue", this};
  std::vector<std::pair<uint64_t, int64_t>> ended;

  int64_t OrderOf(uint64_t) const override { return 0; }
  void VisitDelay(uint64_t, steady::StateVisitor&) override {}
  void DelayEnded(uint64_t tag) override {
    ended.emplace_back(tag, Now().value());
    if (tag != 7) return;
    queue.Push(Now(), 70);  // in the same instant
    queue.Push(Now() + Picoseconds(1), 71);
  }
};

TEST(DelayQueue, EndsInOrderOfTimeThenOfPush) {
  Log log;
  log.queue.Push(Picoseconds(20), 1);
  log.queue.Push(Picoseconds(10), 2);  // earlier than what is scheduled
  log.queue.Push(Picoseconds(20), 3);
  log.queue.Push(Picoseconds(15), 7);
  log.queue.Push(Picoseconds(30), 4);
  sc_core::sc_start();
  EXPECT_THAT(log.ended, ElementsAre(Pair(2, 10), Pair(7, 15), Pair(70, 15), Pair(71, 16),
                                     Pair(1, 20), Pair(3, 20), Pair(4, 30)));
}

}  // namespace
}  // namespace tpusim::events
