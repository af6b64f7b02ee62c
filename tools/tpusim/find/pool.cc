#include "tools/tpusim/find/pool.h"

#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <utility>

#include "configs/check_handler.h"
#include "configs/status_macros.h"
#include "tools/tpusim/find/out_of_memory.h"

namespace tpusim::tools {
namespace {

// A text is its length and its bytes; an answer has a status code in front.
constexpr size_t kHead = sizeof(uint64_t);

bool WriteAll(int fd, const char* bytes, size_t count) {
  while (count > 0) {
    // A worker that has died is an error here, not a SIGPIPE that ends us.
    const ssize_t written = ::send(fd, bytes, count, MSG_NOSIGNAL);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes += written;
    count -= static_cast<size_t>(written);
  }
  return true;
}

bool WriteText(int fd, const std::string& text) {
  const uint64_t size = text.size();
  char head[kHead];
  std::memcpy(head, &size, kHead);
  return WriteAll(fd, head, kHead) && WriteAll(fd, text.data(), text.size());
}

bool ReadAll(int fd, char* bytes, size_t count) {
  while (count > 0) {
    const ssize_t got = ::read(fd, bytes, count);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    bytes += got;
    count -= static_cast<size_t>(got);
  }
  return true;
}

std::optional<std::string> ReadText(int fd) {
  uint64_t size = 0;
  char head[kHead];
  if (!ReadAll(fd, head, kHead)) return std::nullopt;
  std::memcpy(&size, head, kHead);
  std::string text(size, '\0');
  if (!ReadAll(fd, text.data(), size)) return std::nullopt;
  return text;
}

// Takes a text off the front of what was received, if it has come whole.
std::optional<std::string> TakeText(std::string& received) {
  if (received.size() < kHead) return std::nullopt;
  uint64_t size = 0;
  std::memcpy(&size, received.data(), kHead);
  if (received.size() < kHead + size) return std::nullopt;
  std::string text = received.substr(kHead, size);
  received.erase(0, kHead + size);
  return text;
}

// The exit code of a process that ends where memory ends.
constexpr int kExitWithoutMemory = 3;

// Runs a task in a process that was forked for answers, which ends where memory ends, and with its
// parent: `answer` hears what has come of it.
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

}  // namespace

Pool::Pool(int count, Answer answer, Lifetime lifetime)
    : answer_(std::move(answer)), lifetime_(lifetime) {
  workers_.resize(static_cast<size_t>(std::max(count, 1)));
}

Pool::~Pool() {
  for (Worker& worker : workers_) {
    if (worker.pid < 0) continue;
    ::kill(worker.pid, SIGKILL);
    End(worker).IgnoreError();
  }
}

bool Pool::idle() const {
  return std::ranges::any_of(workers_, [](const Worker& w) { return !w.tag; });
}

bool Pool::busy() const {
  return std::ranges::any_of(workers_, [](const Worker& w) { return w.tag.has_value(); });
}

std::optional<int64_t> Pool::last() const {
  const auto found = std::ranges::find_if(workers_, [](const Worker& w) { return !w.tag; });
  return found == workers_.end() ? std::nullopt : found->last;
}

void Pool::Serve(int from, int to) {
  while (const std::optional<std::string> question = ReadText(from)) {
    bool written = false;
    AnswerInChild([&] { return answer_(*question); },
                  [&](const absl::StatusOr<std::string>& answer) {
                    std::string text(1, static_cast<char>(answer.status().code()));
                    text += answer.ok() ? *answer : Message(answer.status());
                    written = WriteText(to, text);
                  });
    if (!written || lifetime_ == Lifetime::kOneQuestion) break;
  }
  ::_exit(0);
}

absl::Status Pool::Begin(Worker& worker) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return UserError(fmt::format("cannot start a process: {}", std::strerror(errno)));
  }
  std::fflush(stdout);
  std::fflush(stderr);
  const pid_t pid = ::fork();
  if (pid < 0) {
    const std::string why = std::strerror(errno);
    ::close(ends[0]);
    ::close(ends[1]);
    return UserError(fmt::format("cannot start a process: {}", why));
  }
  if (pid == 0) {
    ::close(ends[0]);
    Serve(ends[1], ends[1]);
  }
  ::close(ends[1]);
  worker.pid = pid;
  worker.to = worker.from = ends[0];
  worker.received.clear();
  return absl::OkStatus();
}

absl::Status Pool::End(Worker& worker) {
  ::close(worker.to);
  int status = 0;
  while (::waitpid(worker.pid, &status, 0) < 0 && errno == EINTR) {
  }
  worker = {};
  if (WIFEXITED(status) && WEXITSTATUS(status) == kExitWithoutMemory) {
    return UserError("out of memory: the program needs more than a process may have");
  }
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) {
    return UserError("a process was killed, as the system does where memory ends");
  }
  return absl::InternalError(
      WIFSIGNALED(status) ? fmt::format("a process ended by signal {}", WTERMSIG(status))
                          : fmt::format("a process ended with exit code {}", WEXITSTATUS(status)));
}

absl::Status Pool::Ask(int64_t tag, const std::string& question) {
  const auto found = std::ranges::find_if(workers_, [](const Worker& w) { return !w.tag; });
  TPUSIM_CHECK(found != workers_.end(), "no worker is idle");
  if (found->pid < 0) RETURN_IF_ERROR(Begin(*found));
  found->tag = found->last = tag;
  WriteText(found->to, question);  // one that is dead is found by Wait
  return absl::OkStatus();
}

std::optional<Pool::Reply> Pool::Wait(std::chrono::milliseconds at_most) {
  const auto end = std::chrono::steady_clock::now() + at_most;
  while (busy()) {
    for (Worker& worker : workers_) {
      if (!worker.tag) continue;
      if (const std::optional<std::string> text = TakeText(worker.received)) {
        const int64_t tag = *std::exchange(worker.tag, std::nullopt);
        const auto code = static_cast<absl::StatusCode>(text->front());
        if (lifetime_ == Lifetime::kOneQuestion) End(worker).IgnoreError();
        if (code == absl::StatusCode::kOk) return Reply{tag, text->substr(1)};
        return Reply{tag, absl::Status(code, text->substr(1))};
      }
    }
    std::vector<pollfd> ready;
    for (const Worker& worker : workers_) {
      if (worker.tag) ready.push_back({worker.from, POLLIN, 0});
    }
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    if (left.count() <= 0) return std::nullopt;
    if (::poll(ready.data(), ready.size(), static_cast<int>(left.count())) <= 0) continue;
    for (const pollfd& one : ready) {
      if (one.revents == 0) continue;
      Worker& worker =
          *std::ranges::find_if(workers_, [&](const Worker& w) { return w.from == one.fd; });
      char buffer[65536];
      const ssize_t got = ::read(worker.from, buffer, sizeof buffer);
      if (got > 0) {
        worker.received.append(buffer, static_cast<size_t>(got));
      } else if (got == 0 || errno != EINTR) {
        const int64_t tag = *worker.tag;
        return Reply{tag, End(worker)};
      }
    }
  }
  return std::nullopt;
}

std::vector<absl::StatusOr<std::string>> InChildren(const std::vector<Task>& tasks, int parallel,
                                                    const OnEnd& on_end) {
  std::vector<absl::StatusOr<std::string>> answers(tasks.size(), absl::InternalError("not run"));
  Pool pool(
      parallel, [&](const std::string& task) { return tasks[std::stoull(task)](); },
      Pool::Lifetime::kOneQuestion);
  size_t next = 0, ended = 0;
  const auto end = [&](size_t task, absl::StatusOr<std::string> answer) {
    answers[task] = std::move(answer);
    ++ended;
    if (on_end != nullptr) on_end({ended, task, answers[task]});
  };
  while (next < tasks.size() || pool.busy()) {
    if (next < tasks.size() && pool.idle()) {
      const absl::Status begun = pool.Ask(static_cast<int64_t>(next), std::to_string(next));
      if (!begun.ok()) end(next, begun);
      ++next;
    } else if (std::optional<Pool::Reply> reply = pool.Wait(std::chrono::hours(1))) {
      end(static_cast<size_t>(reply->tag), std::move(reply->answer));
    }
  }
  return answers;
}

int Processors() {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

}  // namespace tpusim::tools
