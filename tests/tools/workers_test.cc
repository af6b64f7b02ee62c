#include "tools/tpusim/find/workers.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <map>
#include <stdexcept>
#include <string>

#include "configs/status_macros.h"

namespace tpusim::tools {
namespace {

constexpr std::chrono::milliseconds kLong{60'000};

TEST(WorkersTest, AnswersComeByTag) {
  Workers workers(3, [](const std::string& question) -> absl::StatusOr<std::string> {
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

TEST(WorkersTest, AWorkerKeepsWhatItLearns) {
  int asked = 0;
  Workers workers(1, [&asked](const std::string&) -> absl::StatusOr<std::string> {
    return std::to_string(++asked);
  });
  for (int n = 1; n <= 3; ++n) {
    ASSERT_TRUE(workers.Ask(n, "").ok());
    EXPECT_EQ(workers.Wait(kLong)->answer.value(), std::to_string(n));
  }
  EXPECT_EQ(asked, 0);  // not here
}

TEST(WorkersTest, ErrorsAndLongAnswersComeThrough) {
  Workers workers(1, [](const std::string& question) -> absl::StatusOr<std::string> {
    if (question == "bad") return UserError("it is bad");
    return std::string(3 << 20, 'x');
  });
  ASSERT_TRUE(workers.Ask(1, "bad").ok());
  EXPECT_EQ(Message(workers.Wait(kLong)->answer.status()), "it is bad");
  ASSERT_TRUE(workers.Ask(2, std::string(1 << 20, 'q')).ok());
  EXPECT_EQ(workers.Wait(kLong)->answer->size(), size_t{3} << 20);
}

TEST(WorkersTest, WhatIsBrokenIsTheAnswer) {
  testing::internal::CaptureStderr();
  Workers workers(2, [](const std::string& question) -> absl::StatusOr<std::string> {
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

TEST(WorkersTest, OneThatDiesIsReplaced) {
  Workers workers(1, [](const std::string& question) -> absl::StatusOr<std::string> {
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

TEST(WorkersTest, WaitingEnds) {
  Workers workers(1, [](const std::string&) -> absl::StatusOr<std::string> {
    ::pause();
    return "";
  });
  EXPECT_FALSE(workers.Wait(std::chrono::milliseconds(1)).has_value());
  ASSERT_TRUE(workers.Ask(1, "").ok());
  EXPECT_FALSE(workers.Wait(std::chrono::milliseconds(20)).has_value());
  EXPECT_TRUE(workers.busy());
}

}  // namespace
}  // namespace tpusim::tools
