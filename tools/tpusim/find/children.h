// Several simulations from one process.
//
// SystemC elaborates once per process, so each simulation is a child. A child
// hands back one text; its end and its errors are the parent's Status.
#ifndef TPUSIM_TOOLS_TPUSIM_FIND_CHILDREN_H_
#define TPUSIM_TOOLS_TPUSIM_FIND_CHILDREN_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tpusim::tools {

using Task = std::function<absl::StatusOr<std::string>()>;

// A task that has ended, and how many have by then.
struct TaskEnd {
  size_t count = 0, task = 0;
  const absl::StatusOr<std::string>& answer;
};

// Hears of each task when it ends.
using OnEnd = std::function<void(const TaskEnd& end)>;

// Runs every task in a child of its own, at most `parallel` at a time; the next
// one starts when any has ended. Results in the order of the tasks. A child that
// dies is an internal error. The caller must have no other threads or children
// and must not have simulated itself.
std::vector<absl::StatusOr<std::string>> InChildren(const std::vector<Task>& tasks, int parallel,
                                                    const OnEnd& on_end = nullptr);

// In a process that was forked for it: `answer` hears what has come of the task. Exceptions and
// broken invariants are answers as well, so that the parent tells them, once. The process ends
// where memory ends, with kExitWithoutMemory, and with its parent.
inline constexpr int kExitWithoutMemory = 3;
void AnswerInChild(const Task& task,
                   const std::function<void(const absl::StatusOr<std::string>&)>& answer);

// Processors that this process may use, at least 1.
int Processors();

}  // namespace tpusim::tools

#endif  // TPUSIM_TOOLS_TPUSIM_FIND_CHILDREN_H_
