#include "tools/tpusim/output/console.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "configs/number_text.h"
#include "configs/printable.h"
#include "configs/status_macros.h"

namespace tpusim::tools {
namespace {

void PrintLine(std::string_view prefix, std::string_view message) {
  const std::string line = fmt::format("{}{}\n", prefix, OneLine(message));
  std::fwrite(line.data(), 1, line.size(), stderr);
  std::fflush(stderr);
}

}  // namespace

std::string OneLine(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  std::string line;
  bool at_line_start = false;
  for (const char c : text) {
    if (c == '\n' || c == '\r') {
      at_line_start = true;
      continue;
    }
    if (at_line_start && c == ' ') continue;  // indentation
    if (at_line_start) line += !line.empty() && line.back() == ':' ? " " : "; ";
    at_line_start = false;
    line += c;
  }
  return configs::Printable(line);
}

void PrintError(std::string_view message) { PrintLine("tpusim: error: ", message); }

void PrintInternalError(std::string_view message) {
  PrintLine("tpusim: internal error: ", message);
}

void PrintWarnings(const std::vector<std::string>& messages) {
  for (const std::string& message : messages) PrintLine("tpusim: warning: ", message);
}

void PrintNote(std::string_view message) { PrintLine("tpusim: ", message); }

bool IsTerminal() { return ::isatty(STDERR_FILENO) == 1; }

void ShowProgress(std::string_view text) {
  // Back to the begin of the line, and clear it.
  const std::string line = fmt::format("\r\x1b[K{}", text);
  std::fwrite(line.data(), 1, line.size(), stderr);
  std::fflush(stderr);
}

void ShowCount(size_t done, size_t all, bool quiet) {
  if (quiet || !IsTerminal()) return;
  ShowProgress(done == all ? "" : fmt::format("{} of {} done", done, all));
}

namespace {

// Nothing where there is no edge.
std::optional<size_t> Edge() {
  constexpr size_t kLeast = 60;
  // Many programs set $COLUMNS for what they start: it must not decide what is in a file.
  if (::isatty(STDOUT_FILENO) != 1) return std::nullopt;
  if (const char* const stated = std::getenv("COLUMNS")) {
    const std::optional<size_t> columns = configs::NumberIn<size_t>(stated);
    if (columns && *columns > 0) return std::max(*columns, kLeast);
  }
  struct winsize size;
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return std::nullopt;
  return std::max<size_t>(size.ws_col, kLeast);
}

}  // namespace

size_t ResultColumns() {
  constexpr size_t kNoEdge = 10'000;
  return Edge().value_or(kNoEdge);
}

size_t ResultColumns(size_t usual) { return Edge().value_or(usual); }

size_t HelpColumns() {
  constexpr size_t kReadable = 100;
  return std::min(Edge().value_or(kReadable), kReadable);
}

absl::Status PrintResult(std::string_view result) {
  const std::string text = configs::PrintableLines(result);
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (std::fflush(stdout) == 0 && written) return absl::OkStatus();
  return UserError(fmt::format("cannot write to stdout: {}", std::strerror(errno)));
}

}  // namespace tpusim::tools
