// A line on the terminal for what takes longer than two seconds.
#ifndef TPUSIM_TOOLS_TPUSIM_OUTPUT_PROGRESS_H_
#define TPUSIM_TOOLS_TPUSIM_OUTPUT_PROGRESS_H_

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace tpusim::tools {

// While it lives: "compiling d64.pb, 5 s", every second from the third on; nothing where stderr is
// no terminal. The line is gone afterwards. There must be no fork meanwhile.
class Progress {
 public:
  Progress(std::string what, bool quiet);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

 private:
  void Watch();

  const std::string what_;
  bool ended_ = false;  // guarded by mutex_
  std::mutex mutex_;
  std::condition_variable end_;
  std::thread watcher_;
};

// Rows of a long computation as they come, on stderr: a terminal shows them from the third second
// on, with a line that counts; --verbose always. What stdout gets at the end is in its own order.
class ProgressRows {
 public:
  ProgressRows(size_t all, bool quiet, bool verbose);
  // The next row has come: "v5e-4x4: fits, peak 3.2 GiB".
  void Add(std::string row);

 private:
  const size_t all_;
  const bool shows_count_, verbose_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  size_t ended_ = 0;
  std::vector<std::string> waiting_;
};

}  // namespace tpusim::tools

#endif  // TPUSIM_TOOLS_TPUSIM_OUTPUT_PROGRESS_H_
