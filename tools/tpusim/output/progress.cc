#include "tools/tpusim/output/progress.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "tools/tpusim/output/console.h"

namespace tpusim::tools {

namespace {

constexpr int kPatience = 2;  // seconds

}  // namespace

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

ProgressRows::ProgressRows(size_t all, bool quiet, bool verbose)
    : all_(all), shows_count_(!quiet && IsTerminal()), verbose_(verbose && !quiet) {}

void ProgressRows::Add(std::string row) {
  ++ended_;
  waiting_.push_back(std::move(row));
  const bool long_since =
      std::chrono::steady_clock::now() - start_ > std::chrono::seconds(kPatience);
  if (verbose_ || (shows_count_ && long_since)) {
    if (shows_count_) ShowProgress("");
    for (const std::string& text : waiting_) PrintNote(text);
    waiting_.clear();
  }
  ShowCount(ended_, all_, !shows_count_);
}

}  // namespace tpusim::tools
