#include "tools/tpusim/children.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "configs/status_macros.h"

namespace tpusim::tools {
namespace {

// A child's answer goes through an unnamed file: unlike a pipe it never fills,
// so the parent can wait for children in any order.
struct Child {
  pid_t pid = -1;
  std::FILE* answer = nullptr;
};

// The first byte is the status code.
bool WriteAnswer(const absl::StatusOr<std::string>& result, std::FILE* file) {
  const std::string text = result.ok() ? *result : Message(result.status());
  return std::fputc(static_cast<int>(result.status().code()), file) != EOF &&
         std::fwrite(text.data(), 1, text.size(), file) == text.size() && std::fflush(file) == 0;
}

absl::StatusOr<std::string> ReadAnswer(std::FILE* file) {
  std::rewind(file);
  const int code = std::fgetc(file);
  if (code == EOF) return absl::InternalError("a simulation ended without a result");
  std::string text;
  char buffer[65536];
  while (const size_t n = std::fread(buffer, 1, sizeof buffer, file)) text.append(buffer, n);
  if (code == static_cast<int>(absl::StatusCode::kOk)) return text;
  return absl::Status(static_cast<absl::StatusCode>(code), text);
}

absl::StatusOr<Child> StartChild(const Task& task) {
  Child child;
  child.answer = std::tmpfile();
  if (child.answer == nullptr) {
    return UserError(fmt::format("cannot create a temporary file: {}", std::strerror(errno)));
  }
  // What is buffered would be written twice.
  std::fflush(stdout);
  std::fflush(stderr);
  child.pid = ::fork();
  if (child.pid < 0) {
    const std::string why = std::strerror(errno);
    std::fclose(child.answer);
    return UserError(fmt::format("cannot start a process: {}", why));
  }
  if (child.pid == 0) {
    // No answer is awaited once the parent was told to stop.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    // Without the parent's exit handlers.
    ::_exit(WriteAnswer(task(), child.answer) ? 0 : 1);
  }
  return child;
}

absl::StatusOr<std::string> Finish(const Child& child) {
  int status = 0;
  while (::waitpid(child.pid, &status, 0) < 0 && errno == EINTR) {
  }
  absl::StatusOr<std::string> answer = absl::InternalError("");
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
    answer = ReadAnswer(child.answer);
  } else if (WIFEXITED(status)) {
    answer = absl::InternalError(
        fmt::format("a simulation ended with exit code {}", WEXITSTATUS(status)));
  } else {
    answer = absl::InternalError(
        fmt::format("a simulation ended by signal {}", WIFSIGNALED(status) ? WTERMSIG(status) : 0));
  }
  std::fclose(child.answer);
  return answer;
}

}  // namespace

std::vector<absl::StatusOr<std::string>> InChildren(const std::vector<Task>& tasks, int parallel) {
  std::vector<absl::StatusOr<std::string>> results(tasks.size(), absl::InternalError("not run"));
  std::vector<absl::StatusOr<Child>> children;
  const size_t window = static_cast<size_t>(std::max(parallel, 1));
  for (size_t i = 0; i < tasks.size() + window; ++i) {
    if (i >= window && i - window < children.size()) {
      const absl::StatusOr<Child>& oldest = children[i - window];
      results[i - window] = oldest.ok() ? Finish(*oldest) : oldest.status();
    }
    if (i < tasks.size()) children.push_back(StartChild(tasks[i]));
  }
  return results;
}

int Processors() {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

}  // namespace tpusim::tools
