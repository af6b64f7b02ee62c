#include "tools/tpusim/children.h"

#include <gtest/gtest.h>
#include <sys/types.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <vector>

#include "configs/status_macros.h"

namespace tpusim::tools {
namespace {

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

TEST(InChildrenTest, ADyingChildIsAnInternalError) {
  const auto results = InChildren({[]() -> absl::StatusOr<std::string> { ::_exit(70); },
                                   []() -> absl::StatusOr<std::string> {
                                     std::signal(SIGKILL, SIG_DFL);
                                     ::kill(::getpid(), SIGKILL);
                                     return std::string();
                                   }},
                                  2);
  EXPECT_EQ(results[0].status(), absl::InternalError("a simulation ended with exit code 70"));
  EXPECT_EQ(results[1].status(), absl::InternalError("a simulation ended by signal 9"));
}

}  // namespace
}  // namespace tpusim::tools
