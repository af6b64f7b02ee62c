#include "tools/tpusim/find/children.h"

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
#include <exception>
#include <map>
#include <utility>

#include "configs/check_handler.h"
#include "configs/status_macros.h"
#include "tools/tpusim/find/out_of_memory.h"

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
    bool written = false;
    AnswerInChild(task, [&](const absl::StatusOr<std::string>& result) {
      written = WriteAnswer(result, child.answer);
    });
    // Without the parent's exit handlers.
    ::_exit(written ? 0 : 1);
  }
  return child;
}

// What a child that has ended leaves behind; `status` as waitpid says.
absl::StatusOr<std::string> AnswerOf(const Child& child, int status) {
  absl::StatusOr<std::string> answer = absl::InternalError("");
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
    answer = ReadAnswer(child.answer);
  } else if (WIFEXITED(status) && WEXITSTATUS(status) == kExitWithoutMemory) {
    answer = UserError("out of memory: the program needs more than a process may have");
  } else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) {
    answer = UserError("a simulation was killed, as the system does where memory ends");
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

std::vector<absl::StatusOr<std::string>> InChildren(const std::vector<Task>& tasks, int parallel,
                                                    const OnEnd& on_end) {
  std::vector<absl::StatusOr<std::string>> results(tasks.size(), absl::InternalError("not run"));
  std::map<pid_t, std::pair<size_t, Child>> running;  // the task, by process
  size_t next = 0, ended = 0;
  const auto end = [&](size_t task, absl::StatusOr<std::string> result) {
    results[task] = std::move(result);
    ++ended;
    if (on_end != nullptr) on_end({ended, task, results[task]});
  };
  while (next < tasks.size() || !running.empty()) {
    if (next < tasks.size() && static_cast<int>(running.size()) < std::max(parallel, 1)) {
      absl::StatusOr<Child> child = StartChild(tasks[next]);
      if (child.ok()) {
        running.emplace(child->pid, std::pair(next, *child));
      } else {
        end(next, child.status());
      }
      ++next;
      continue;
    }
    // Whichever ends first makes room for another.
    int status = 0;
    const pid_t pid = ::waitpid(-1, &status, 0);
    if (pid < 0 && errno == EINTR) continue;
    TPUSIM_CHECK(pid > 0, "children that were started are gone");
    const auto found = running.find(pid);
    if (found == running.end()) continue;  // not one of ours
    end(found->second.first, AnswerOf(found->second.second, status));
    running.erase(found);
  }
  return results;
}

void AnswerInChild(const Task& task,
                   const std::function<void(const absl::StatusOr<std::string>&)>& answer) {
  static const std::function<void(const absl::StatusOr<std::string>&)>* current = nullptr;
  current = &answer;
  // No answer is awaited once the parent was told to stop.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  SetOutOfMemoryHandler([] { ::_exit(kExitWithoutMemory); });
  SetCheckHandler([](const std::string& what) {
    (*current)(absl::InternalError(what));
    ::_exit(0);
  });
  absl::StatusOr<std::string> result = absl::InternalError("");
  try {
    result = task();
  } catch (const std::exception& error) {
    result = absl::InternalError(error.what());
  }
  answer(result);
}

int Processors() {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

}  // namespace tpusim::tools
