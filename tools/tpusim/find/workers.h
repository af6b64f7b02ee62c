// Processes that answer one question after the other.
//
// A worker is a fork: it has what its parent had, and keeps what it learns between questions.
// Questions and answers are texts. A worker that dies answers with an error, and another takes its
// place.
#ifndef TPUSIM_TOOLS_TPUSIM_FIND_WORKERS_H_
#define TPUSIM_TOOLS_TPUSIM_FIND_WORKERS_H_

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

class Workers {
 public:
  using Answer = std::function<absl::StatusOr<std::string>(const std::string& question)>;

  // At most `count` of them, each begun when there is something to ask. The caller must have no
  // other threads.
  Workers(int count, Answer answer);
  ~Workers();  // ends all
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  bool idle() const;  // one of them at least
  bool busy() const;  // likewise
  // What the worker that Ask would ask was asked before; nothing: it would be a new one.
  std::optional<int64_t> last() const;
  // Error: no process can be begun. One must be idle.
  absl::Status Ask(int64_t tag, const std::string& question);

  struct Reply {
    int64_t tag = 0;
    absl::StatusOr<std::string> answer;
  };
  // The next answer; nothing when that long has passed without one.
  std::optional<Reply> Wait(std::chrono::milliseconds at_most);

 private:
  struct Worker {
    pid_t pid = -1;
    int to = -1, from = -1;
    std::optional<int64_t> tag, last;
    std::string received;
  };
  absl::Status Begin(Worker& worker);
  absl::Status End(Worker& worker);  // what became of it
  [[noreturn]] void Serve(int from, int to);

  const Answer answer_;
  std::vector<Worker> workers_;
};

}  // namespace tpusim::tools

#endif  // TPUSIM_TOOLS_TPUSIM_FIND_WORKERS_H_
