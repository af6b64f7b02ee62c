#include "tools/tpusim/progress.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "tools/tpusim/console.h"

namespace tpusim::tools {

Progress::Progress(std::string what, bool quiet) : what_(std::move(what)) {
  if (!quiet && IsTerminal()) watcher_ = std::thread([this] { Watch(); });
}

Progress::~Progress() {
  if (!watcher_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  end_.notify_one();
  watcher_.join();
}

void Progress::Watch() {
  constexpr int kPatience = 2;  // seconds
  std::unique_lock lock(mutex_);
  bool shown = false;
  for (int seconds = 1;; ++seconds) {
    if (end_.wait_for(lock, std::chrono::seconds(1), [this] { return ended_; })) break;
    if (seconds <= kPatience) continue;
    ShowProgress(fmt::format("{}, {} s", what_, seconds));
    shown = true;
  }
  if (shown) ShowProgress("");
}

}  // namespace tpusim::tools
