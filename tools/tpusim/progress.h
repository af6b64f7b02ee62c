// A line on the terminal for what takes longer than two seconds.
#ifndef TPUSIM_TOOLS_TPUSIM_PROGRESS_H_
#define TPUSIM_TOOLS_TPUSIM_PROGRESS_H_

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

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

}  // namespace tpusim::tools

#endif  // TPUSIM_TOOLS_TPUSIM_PROGRESS_H_
