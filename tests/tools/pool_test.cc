#include "tools/tpusim/find/pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/types.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "configs/status_macros.h"

namespace tpusim::tools {
namespace {

constexpr std::chrono::milliseconds kLong{60'000};

TEST(PoolTest, AnswersComeByTag) {
  Pool workers(3, [](const std::string& question) -> absl::StatusOr<std::string> {
    return question + question;
  });
  std::map<int64_t, std::string> answers;
  int64_t tag = 0;
  while (answers.size() < 20) {
    while (tag < 20 && workers.idle()) {
      ASSERT_TRUE(workers.Ask(tag, std::to_string(tag)).ok());
      ++tag;
    }
    const auto reply = workers.Wait(kLong);
    ASSERT_TRUE(reply.has_value());
    answers[reply->tag] = reply->answer.value();
  }
  for (const auto& [number, answer] : answers) {
    EXPECT_EQ(answer, std::to_string(number) + std::to_string(number));
  }
  EXPECT_FALSE(workers.busy());
}

TEST(PoolTest, AWorkerKeepsWhatItLearns) {
  int asked = 0;
  Pool workers(1, [&asked](const std::string&) -> absl::StatusOr<std::string> {
    return std::to_string(++asked);
  });
  for (int n = 1; n <= 3; ++n) {
    ASSERT_TRUE(workers.Ask(n, "").ok());
    EXPECT_EQ(workers.Wait(kLong)->answer.value(), std::to_string(n));
  }
  EXPECT_EQ(asked, 0);  // not here
}

TEST(PoolTest, ErrorsAndLongAnswersComeThrough) {
  Pool workers(1, [](const std::string& question) -> absl::StatusOr<std::string> {
    if (question == "bad") return UserError("it is bad");
    return std::string(3 << 20, 'x');
  });
  ASSERT_TRUE(workers.Ask(1, "bad").ok());
  EXPECT_EQ(Message(workers.Wait(kLong)->answer.status()), "it is bad");
  ASSERT_TRUE(workers.Ask(2, std::string(1 << 20, 'q')).ok());
  EXPECT_EQ(workers.Wait(kLong)->answer->size(), size_t{3} << 20);
}

TEST(PoolTest, WhatIsBrokenIsTheAnswer) {
  testing::internal::CaptureStderr();
  Pool workers(2, [](const std::string& question) -> absl::StatusOr<std::string> {
    if (question == "throw") throw std::runtime_error("thrown");
    TPUSIM_CHECK(question == "live", "question");
    return question;
  });
  ASSERT_TRUE(workers.Ask(1, "throw").ok());
  EXPECT_EQ(workers.Wait(kLong)->answer.status(), absl::InternalError("thrown"));
  ASSERT_TRUE(workers.Ask(2, "live").ok());
  EXPECT_EQ(workers.Wait(kLong)->answer.value(), "live");
  ASSERT_TRUE(workers.Ask(3, "break").ok());
  EXPECT_EQ(workers.Wait(kLong)->answer.status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(PoolTest, OneThatDiesIsReplaced) {
  Pool workers(1, [](const std::string& question) -> absl::StatusOr<std::string> {
    if (question == "die") ::raise(SIGKILL);
    return question;
  });
  ASSERT_TRUE(workers.Ask(1, "die").ok());
  const auto reply = workers.Wait(kLong);
  EXPECT_EQ(reply->tag, 1);
  EXPECT_FALSE(reply->answer.ok());
  ASSERT_TRUE(workers.Ask(2, "live").ok());
  EXPECT_EQ(workers.Wait(kLong)->answer.value(), "live");
}

TEST(PoolTest, WaitingEnds) {
  Pool workers(1, [](const std::string&) -> absl::StatusOr<std::string> {
    ::pause();
    return "";
  });
  EXPECT_FALSE(workers.Wait(std::chrono::milliseconds(1)).has_value());
  ASSERT_TRUE(workers.Ask(1, "").ok());
  EXPECT_FALSE(workers.Wait(std::chrono::milliseconds(20)).has_value());
  EXPECT_TRUE(workers.busy());
}

Task Returns(std::string text) {
  return [text]() -> absl::StatusOr<std::string> { return text; };
}

TEST(InChildrenTest, KeepsTheOrderOfTheTasks) {
  std::vector<Task> tasks;
  for (int i = 0; i < 7; ++i) tasks.push_back(Returns(std::to_string(i)));
  for (const int parallel : {1, 2, 16}) {
    const auto results = InChildren(tasks, parallel);
    ASSERT_EQ(results.size(), 7u);
    for (int i = 0; i < 7; ++i) EXPECT_EQ(results[i].value(), std::to_string(i)) << parallel;
  }
}

TEST(InChildrenTest, EveryTaskHasAProcessOfItsOwn) {
  const Task pid = []() -> absl::StatusOr<std::string> { return std::to_string(::getpid()); };
  const auto results = InChildren({pid, pid}, 2);
  EXPECT_NE(results[0].value(), results[1].value());
  EXPECT_NE(results[0].value(), std::to_string(::getpid()));
}

TEST(InChildrenTest, AnswersMayBeLongerThanAPipeHolds) {
  const std::string text(3 << 20, 'x');
  EXPECT_EQ(InChildren({Returns(text)}, 1)[0].value(), text);
}

TEST(InChildrenTest, ErrorsKeepTheirCodeAndText) {
  const auto results = InChildren(
      {[]() -> absl::StatusOr<std::string> { return NoRule("no rule for fft.1"); }, Returns("b")},
      1);
  EXPECT_EQ(results[0].status(), NoRule("no rule for fft.1"));
  EXPECT_EQ(results[1].value(), "b");
}

// The first task lasts until the last one has begun: with two at a time, only if the others do not
// wait for it.
TEST(InChildrenTest, NobodyWaitsForTheOldest) {
  int fds[2];
  ASSERT_EQ(::pipe(fds), 0);
  const Task oldest = [&]() -> absl::StatusOr<std::string> {
    char byte = 0;
    return ::read(fds[0], &byte, 1) == 1 ? std::string(1, byte) : "closed";
  };
  const Task last = [&]() -> absl::StatusOr<std::string> {
    return ::write(fds[1], "w", 1) == 1 ? "written" : "not written";
  };
  std::vector<size_t> heard;
  const auto results = InChildren({oldest, Returns("a"), Returns("b"), last}, 2,
                                  [&](const TaskEnd& end) { heard.push_back(end.count); });
  EXPECT_EQ(results[0].value(), "w");
  EXPECT_EQ(results[3].value(), "written");
  EXPECT_EQ(heard, (std::vector<size_t>{1, 2, 3, 4}));
  ::close(fds[0]);
  ::close(fds[1]);
}

// The parent tells what went wrong, once: the child prints nothing.
TEST(InChildrenTest, WhatIsBrokenIsTheAnswer) {
  testing::internal::CaptureStderr();
  const auto results =
      InChildren({[]() -> absl::StatusOr<std::string> { throw std::runtime_error("thrown"); },
                  []() -> absl::StatusOr<std::string> {
                    TPUSIM_CHECK(1 + 1 == 3, "sums");
                    return "";
                  }},
                 2);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(results[0].status(), absl::InternalError("thrown"));
  EXPECT_EQ(results[1].status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(Message(results[1].status()), testing::EndsWith(": sums (1 + 1 == 3)"));
}

// But for the signal that the system sends where memory ends.
TEST(InChildrenTest, ADyingChildIsAnInternalError) {
  const auto dies_by = [](int signal) {
    return [signal]() -> absl::StatusOr<std::string> {
      std::signal(signal, SIG_DFL);
      ::kill(::getpid(), signal);
      return std::string();
    };
  };
  const auto results = InChildren(
      {[]() -> absl::StatusOr<std::string> { ::_exit(70); }, dies_by(SIGTERM), dies_by(SIGKILL)},
      2);
  EXPECT_EQ(results[0].status(), absl::InternalError("a process ended with exit code 70"));
  EXPECT_EQ(results[1].status(), absl::InternalError("a process ended by signal 15"));
  EXPECT_EQ(results[2].status(),
            UserError("a process was killed, as the system does where memory ends"));
}

}  // namespace
}  // namespace tpusim::tools
