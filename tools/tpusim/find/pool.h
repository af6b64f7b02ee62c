// Processes that answer questions.
//
// A worker is a fork: it has what its parent had, and keeps what it learns between questions.
// Questions and answers are texts. A worker that dies answers with an error, and another takes its
// place. Exceptions and broken invariants are answers as well, so that the parent tells them, once.
#ifndef TPUSIM_TOOLS_TPUSIM_FIND_POOL_H_
#define TPUSIM_TOOLS_TPUSIM_FIND_POOL_H_

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tpusim::tools {

class Pool {
 public:
  using Answer = std::function<absl::StatusOr<std::string>(const std::string& question)>;

  // The life of a worker: it answers one question after the other, or one alone.
  enum class Lifetime { kStays, kOneQuestion };

  // Has at most `count` workers, each begun when there is something to ask. The caller must have no
  // other threads.
  Pool(int count, Answer answer, Lifetime lifetime = Lifetime::kStays);
  ~Pool();  // ends all
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  bool idle() const;  // a worker is, at least
  bool busy() const;  // likewise
  // Returns what the worker that Ask would ask was asked before; nothing: it would be a new one.
  std::optional<int64_t> last() const;
  // Error: no process can be begun. One must be idle.
  absl::Status Ask(int64_t tag, const std::string& question);

  struct Reply {
    int64_t tag = 0;
    absl::StatusOr<std::string> answer;
  };
  // Returns the next answer; nothing when that long has passed without one.
  std::optional<Reply> Wait(std::chrono::milliseconds at_most);

 private:
  struct Worker {
    pid_t pid = -1;
    int to = -1, from = -1;
    std::optional<int64_t> tag, last;
    std::string received;
  };
  absl::Status Begin(Worker& worker);
  absl::Status End(Worker& worker);  // returns what became of it
  [[noreturn]] void Serve(int from, int to);

  const Answer answer_;
  const Lifetime lifetime_;
  std::vector<Worker> workers_;
};

using Task = std::function<absl::StatusOr<std::string>()>;

// A task that has ended, and how many have by then.
struct TaskEnd {
  size_t count = 0, task = 0;
  const absl::StatusOr<std::string>& answer;
};

// Hears of each task when it ends.
using OnEnd = std::function<void(const TaskEnd& end)>;

// Runs every task in a process of its own, at most `parallel` at a time, and returns their answers
// in the order of the tasks.
std::vector<absl::StatusOr<std::string>> InChildren(const std::vector<Task>& tasks, int parallel,
                                                    const OnEnd& on_end = nullptr);

// Returns the processors that this process may use, at least 1.
int Processors();

}  // namespace tpusim::tools

#endif  // TPUSIM_TOOLS_TPUSIM_FIND_POOL_H_
